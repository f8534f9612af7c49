//! `bayespc inspect`: what is in a model file.
//!
//! ```text
//! effective parameters of a layer = Σ_n d_y φ_nᵀVφ_n = d_y (d_x − tr(V V⁰⁻¹))
//! ```
//!
//! counts the weights that the data have decided; the rest are still as the prior has them.

use std::path::PathBuf;

use anyhow::{Context, Result};
use bayespc::Task;
use bayespc::model::{Member, Model, Noise};
use bayespc::network::Layer;
use clap::Args;
use serde_json::{Value, json};

use crate::card::{card, kind_line};
use crate::columns::understood;
use crate::failure::usage;
use crate::fit::DATA_NOTE;
use crate::inspect_latent;
use crate::output::{print, print_json, two_columns};
use crate::predict::{Stored, encoding_of, read_stored, target_names};
use crate::sink::significant;

/// Show what is in a model file.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  bayespc inspect rent.safetensors
  bayespc inspect rent.safetensors --card > rent.md

`effective` counts the weights that the data have decided; the others are still as the prior has them.")]
pub struct InspectArgs {
    /// Model that `bayespc fit` or `bayespc impute --model-out` wrote
    model: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Print a model card in Markdown: its data, what it is, how good, and its limits
    #[arg(long, conflicts_with = "json")]
    card: bool,
}

/// What is shown of a layer.
struct LayerFacts {
    name: String,
    shape: (usize, usize),
    effective: f64,
    prior_var: f64,
}

/// Run the command.
pub fn run(args: &InspectArgs) -> Result<()> {
    let model = match read_stored(&args.model)? {
        Stored::Predictive(model) => *model,
        Stored::Latent(_) if args.card => {
            return Err(usage("--card: only a model that predicts a target has a card"));
        }
        Stored::Latent(model) if args.json => {
            return print_json(&inspect_latent::to_json(&model, &args.model)?);
        }
        Stored::Latent(model) => return print(&inspect_latent::to_text(&model, &args.model)?),
    };
    let encoding = encoding_of(&model, &args.model).ok();
    let targets = encoding.as_ref().map_or_else(Vec::new, |encoding| target_names(encoding, &model));
    if args.card {
        return print(card(&args.model, &model, encoding.as_ref(), &targets).trim_end());
    }
    let features = encoding.as_ref().map_or_else(Vec::new, bayespc_data::Encoding::feature_names);
    let members = model.members().iter().map(layers).collect::<Result<Vec<_>>>()?;
    let noise = model.noise()?;
    let columns = encoding.map_or_else(Vec::new, |encoding| encoding.columns);
    if args.json {
        let mut result = to_json(&model, &members, noise.as_ref(), &features, &targets);
        result["columns"] = json!(columns);
        return print_json(&result);
    }
    let mut text = to_text(&model, &members, noise.as_ref(), &features, &targets)?;
    if !columns.is_empty() {
        text = format!("{text}\n\n{}", understood(&columns));
    }
    print(&text)
}

fn layers(member: &Member) -> Result<Vec<LayerFacts>> {
    let network = member.network();
    let n_hidden = network.hidden().len();
    let facts = |(l, layer): (usize, &Layer<f64>)| {
        let (d_post, d_pre) = (layer.d_post(), layer.d_pre());
        let name =
            if l < n_hidden { format!("hidden {}", l + 1) } else { format!("output {}", l - n_hidden + 1) };
        Ok(LayerFacts {
            name,
            shape: (d_post, d_pre),
            effective: d_post as f64 * layer.effective_inputs()?,
            prior_var: layer.prior_var(),
        })
    };
    network.layers().enumerate().map(facts).collect()
}

fn task_name(model: &Model) -> String {
    match model.task() {
        Task::Regression => "regression".to_owned(),
        Task::Classification { classes } => format!("classification into {classes} classes"),
    }
}

fn to_json(
    model: &Model,
    members: &[Vec<LayerFacts>],
    noise: Option<&Noise>,
    features: &[String],
    targets: &[String],
) -> Value {
    let layer = |facts: &LayerFacts| {
        json!({
            "name": facts.name,
            "post": facts.shape.0,
            "pre": facts.shape.1,
            "parameters": facts.shape.0 * facts.shape.1,
            "effective_parameters": facts.effective,
            "prior_var": facts.prior_var,
        })
    };
    let members: Vec<Value> = members
        .iter()
        .zip(model.members())
        .map(|(layers, member)| {
            let layers: Vec<Value> = layers.iter().map(layer).collect();
            json!({ "plan": member.plan(member.report.epochs), "layers": layers })
        })
        .collect();
    json!({
        "data": model.notes().get(DATA_NOTE),
        "task": model.task(),
        "features": features,
        "targets": targets,
        "samples": model.n_seen(),
        "noise_std": noise.map(|noise| &noise.std),
        "noise_at": noise.and_then(|noise| noise.at),
        "members": members,
        "training": model.reports(),
        "tried": model.candidates(),
        "held_out": model.held_out(),
        "spread": model.spread(),
        "warnings": model.warnings(),
        "settings": model.settings(),
    })
}

fn to_text(
    model: &Model,
    members: &[Vec<LayerFacts>],
    noise: Option<&Noise>,
    features: &[String],
    targets: &[String],
) -> Result<String> {
    let listed = |names: &[String], count: usize| {
        if names.is_empty() { count.to_string() } else { format!("{count}: {}", names.join(", ")) }
    };
    let mut facts = vec![("task".to_owned(), task_name(model))];
    if let Some(data) = model.notes().get(DATA_NOTE) {
        facts.push(("data".into(), format!("{data}, {} rows", model.n_seen())));
    }
    facts.push(("features".into(), listed(features, model.n_features())));
    facts.push(("targets".into(), listed(targets, model.n_targets())));
    facts.push(("members".into(), model.members().len().to_string()));
    facts.extend(held_out(model));
    facts.push((
        "noise (standard deviation)".into(),
        noise.map_or_else(|| "depends on the input".to_owned(), noise_text),
    ));
    let mut lines = vec![two_columns(&facts)];
    for (m, layers) in members.iter().enumerate() {
        // Networks of one kind differ by the fold they have not seen: one of them shows what they are.
        let kind = |member: &Member| member.plan(0);
        let own = kind(&model.members()[m]);
        if model.members()[..m].iter().any(|member| kind(member) == own) {
            continue;
        }
        let alike = model.members().iter().filter(|member| kind(member) == own).count();
        lines.push(String::new());
        if members.len() > 1 {
            lines.push(kind_line(&own, alike));
        }
        if own.is_ignorant() {
            continue;
        }
        lines.push(layer_table(layers));
        if let Some(report) = model.reports().get(m) {
            let loss = report.loss.last().map_or_else(String::new, |loss| format!(", last loss {loss:.4}"));
            let kept = match report.best_epoch {
                best if best == report.epochs => String::new(),
                best => format!(", kept epoch {best}"),
            };
            lines.push(format!("{} epochs, {} batches{loss}{kept}", report.epochs, report.steps));
        }
    }
    let settings = toml::to_string(model.settings()).context("the settings cannot be written as TOML")?;
    lines.push("\nsettings".to_owned());
    lines.extend(settings.trim_end().lines().map(|line| format!("  {line}").trim_end().to_owned()));
    Ok(lines.join("\n"))
}

fn noise_text(noise: &Noise) -> String {
    let std = noise.std.iter().map(|std| format!("{std:.4}")).collect::<Vec<_>>().join(", ");
    match noise.at {
        Some(at) => format!("{std} where the target is {at:.4}, and grows with it"),
        None => std,
    }
}

/// How samples were predicted by networks that had not learned from them.
fn held_out(model: &Model) -> Vec<(String, String)> {
    let Some(scores) = model.held_out() else { return Vec::new() };
    let mut facts = vec![("held-out log density".to_owned(), format!("{:.4}", scores.log_density))];
    if !scores.rmse.is_empty() {
        let each: Vec<String> = scores.rmse.iter().map(|rmse| format!("{rmse:.4}")).collect();
        facts.push(("held-out RMSE".to_owned(), each.join(", ")));
    }
    let shares =
        [("held-out accuracy", scores.accuracy), ("held-out 90 % intervals cover", scores.coverage_90)];
    facts.extend(
        shares.into_iter().filter_map(|(name, share)| Some((name.to_owned(), format!("{:.3}", share?)))),
    );
    facts
}

fn layer_table(layers: &[LayerFacts]) -> String {
    let mut lines =
        vec![format!("{:<10}{:>12}{:>9}{:>11}{:>11}", "layer", "shape", "weights", "effective", "prior var")];
    for facts in layers {
        let (d_post, d_pre) = facts.shape;
        lines.push(format!(
            "{:<10}{:>12}{:>9}{:>11.1}{:>11}",
            facts.name,
            format!("{d_post} × {d_pre}"),
            d_post * d_pre,
            facts.effective,
            significant(facts.prior_var, 4),
        ));
    }
    let weights: usize = layers.iter().map(|f| f.shape.0 * f.shape.1).sum();
    let effective: f64 = layers.iter().map(|f| f.effective).sum();
    lines.push(format!("{:<10}{:>12}{weights:>9}{effective:>11.1}", "all", ""));
    lines.join("\n")
}
