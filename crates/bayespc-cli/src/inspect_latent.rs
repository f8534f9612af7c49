//! `bayespc inspect` of a model of a table without a target.

use std::path::Path;

use anyhow::Result;
use bayespc::model::{LatentCandidate, LatentModel};
use serde_json::{Value, json};

use crate::latent_columns::LatentColumns;
use crate::output::two_columns;
use crate::sink::significant;

/// What is shown, as JSON.
pub fn to_json(model: &LatentModel, path: &Path) -> Result<Value> {
    Ok(json!({
        "task": "density",
        "columns": columns(model, path)?,
        "inputs": model.n_columns(),
        "latents": model.n_latents(),
        "parts": model.n_parts(),
        "iterations": model.n_iterations(),
        "candidates": model.candidates(),
        "settings": model.settings(),
    }))
}

/// What is shown, as text.
pub fn to_text(model: &LatentModel, path: &Path) -> Result<String> {
    let columns = columns(model, path)?;
    let facts = [
        ("task", "density of a table, for `bayespc impute --model` and `bayespc generate`".to_owned()),
        ("columns", format!("{}: {}", columns.len(), columns.join(", "))),
        ("latents", model.n_latents().to_string()),
        ("parts", model.n_parts().to_string()),
        ("steps of learning", model.n_iterations().to_string()),
    ];
    let mut lines = vec![two_columns(&facts.map(|(name, value)| (name.to_owned(), value)))];
    if !model.candidates().is_empty() {
        lines.push(format!("\n{:<10}{:>7}{:>36}", "latents", "parts", "log density of a cell taken out"));
        let line = |tried: &LatentCandidate| {
            format!("{:<10}{:>7}{:>36}", tried.latents, tried.parts, significant(tried.log_density, 4))
        };
        lines.extend(model.candidates().iter().map(line));
    }
    Ok(lines.join("\n"))
}

fn columns(model: &LatentModel, path: &Path) -> Result<Vec<String>> {
    let columns = LatentColumns::of_model(model, &path.display().to_string())?;
    Ok(columns.names().map(str::to_owned).collect())
}
