//! What a model says of one row.

use bayespc::prediction::CLASS_DRAWS;
use serde_json::{Value, json};

use super::RowRequest;
use super::density::Density;
use crate::answer::{likeliest, probability_std};
use crate::cells::table;
use crate::problem::Problem;
use crate::served::Served;

/// The row's prediction, and how unlike the rows learned from it is.
pub fn row(served: &Served, request: &RowRequest) -> Result<(Value, Vec<f64>), Problem> {
    let asked = request.asked()?;
    let rows = served.rows(&table(served, &request.columns()?)?, asked.unseen)?;
    let predictive = served.model.predict(&rows.features)?;
    let ood = served.model.unlike(&rows.features, &predictive);
    let mut value = if served.is_classifier() {
        let temperature = served.model.temperature();
        let probabilities = predictive.class_probabilities(temperature)?;
        let parts = predictive.class_decomposition(temperature, CLASS_DRAWS.0, CLASS_DRAWS.1)?;
        let spread = probability_std(served, &predictive)?;
        let class = likeliest(&probabilities, 0);
        json!({
            "class": class,
            "probabilities": probabilities.col_as_slice(0),
            "probability_std": spread.col_as_slice(0),
            "entropy": parts.total[0],
            "aleatoric_entropy": parts.aleatoric[0],
            "epistemic_entropy": parts.epistemic[0],
        })
    } else {
        let target = request.of.unwrap_or(0);
        let (lower, upper) = predictive.interval(asked.level)?;
        json!({
            "mean": predictive.mean()[(target, 0)],
            "std": predictive.std()[(target, 0)],
            "aleatoric_std": predictive.aleatoric_variance()[(target, 0)].sqrt(),
            "epistemic_std": predictive.epistemic_variance()[(target, 0)].sqrt(),
            "lower": lower[(target, 0)],
            "upper": upper[(target, 0)],
            "density": Density::of(&predictive, target)?,
        })
    };
    value["level"] = json!(asked.level);
    value["ood_score"] = json!(ood[0]);
    value["warnings"] = json!(rows.warnings);
    Ok((value, ood))
}
