//! `bayespc inspect --card`: a model card in Markdown, for those who get the file and not its story.

use std::fmt::Write as _;
use std::path::Path;

use bayespc::heads::HeadSettings;
use bayespc::model::{Member, MemberPlan, Model};
use bayespc::{Method, Task};
use bayespc_data::{ColumnSummary, Encoding};

use crate::fit::DATA_NOTE;
use crate::sink::significant;

/// Columns that are listed one by one.
const LISTED: usize = 60;

/// The card of a model.
pub fn card(path: &Path, model: &Model, encoding: Option<&Encoding>, targets: &[String]) -> String {
    let name =
        path.file_stem().map_or_else(|| "model".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let mut text = format!("# Model card: {}\n\n", escaped(&name));
    text += &format!("{}\n", what(model, targets));
    text += &data(model, encoding);
    text += &networks(model);
    text += &scores(model, targets);
    text += &limits(model);
    text += &use_of(path);
    text
}

fn what(model: &Model, targets: &[String]) -> String {
    let names: Vec<String> = targets.iter().map(|name| format!("`{name}`")).collect();
    let of = match (model.task(), names.is_empty()) {
        (Task::Regression, false) => format!("It predicts {}", names.join(", ")),
        (Task::Regression, true) => format!("It predicts {} numbers", model.n_targets()),
        (Task::Classification { classes }, false) => {
            format!("It tells {classes} classes: {}", names.join(", "))
        }
        (Task::Classification { classes }, true) => format!("It tells {classes} classes"),
    };
    let method = match model.settings().method {
        Method::Mean => "by the mean weights, without epistemic uncertainty",
        Method::MonteCarlo { .. } => "by networks drawn from the posterior",
        Method::Moments { .. } => "by moments carried through every layer",
        Method::Linearised => "to first order in the weights",
        _ => "by another method",
    };
    format!(
        "A Bayesian predictive-coding model of bayespc {}. {of}, each prediction a distribution whose variance is told apart \
         into noise (aleatoric) and what more data would take away (epistemic), {method}.\n",
        env!("CARGO_PKG_VERSION")
    )
}

fn data(model: &Model, encoding: Option<&Encoding>) -> String {
    let mut text = "## Data\n\n".to_owned();
    let source =
        model.notes().get(DATA_NOTE).map_or_else(|| "not noted".to_owned(), |data| format!("`{data}`"));
    let _ = writeln!(text, "- Source: {source}");
    let _ = writeln!(text, "- Rows learned from: {}", model.n_seen());
    let _ = writeln!(text, "- Inputs of the networks: {}\n", model.n_features());
    let columns = encoding.map_or(&[][..], |encoding| &encoding.columns);
    if columns.is_empty() {
        return text;
    }
    text += "| column | taken for | values | missing | inputs |\n|---|---|---|---|---|\n";
    for column in columns.iter().take(LISTED) {
        let ColumnSummary { name, understood, values, missing, inputs, .. } = column;
        let (name, understood, values) = (escaped(name), escaped(&understood.to_string()), escaped(values));
        let _ = writeln!(text, "| {name} | {understood} | {values} | {missing} | {inputs} |");
    }
    if columns.len() > LISTED {
        let _ = writeln!(text, "\nand {} more", columns.len() - LISTED);
    }
    text + "\n"
}

fn networks(model: &Model) -> String {
    let mut text = "## What it is\n\n".to_owned();
    let members = model.members();
    let _ = writeln!(text, "{} networks, whose mixture predicts:\n", members.len());
    let kind = |member: &Member| member.plan(0);
    for (m, member) in members.iter().enumerate() {
        let own = kind(member);
        if members[..m].iter().any(|other| kind(other) == own) {
            continue;
        }
        let alike = members.iter().filter(|other| kind(other) == own).count();
        if own.is_ignorant() {
            let _ = writeln!(text, "- {}", kind_line(&own, alike));
            continue;
        }
        let widths: Vec<String> = own.network.hidden_layer_sizes.iter().map(ToString::to_string).collect();
        let shape = if widths.is_empty() {
            "no hidden layer".to_owned()
        } else {
            format!("hidden layers {}", widths.join("-"))
        };
        let prior = significant(own.network.prior.var, 3);
        let _ = writeln!(text, "- {}, {shape}, prior variance {prior}", kind_line(&own, alike));
    }
    if let Some(spread) = model.spread() {
        let leaning = spread.skew.map_or(String::new(), |skew| {
            let side = if skew.skewness() > 0.0 { "right" } else { "left" };
            format!(" The noise leans: its long tail is on the {side}.")
        });
        let _ = writeln!(
            text,
            "\nRows that networks had not learned from have set the size of the uncertainty: noise × {}, doubt × {} near the \
             data and × {} far from it, Student-t tails with {} degrees of freedom.{leaning}",
            significant(spread.aleatoric, 3),
            significant(spread.epistemic, 3),
            significant(spread.far, 3),
            significant(spread.dof, 3)
        );
    }
    let _ = writeln!(text, "\nSeed {}.\n", model.settings().training.seed);
    text
}

/// What networks of a kind have in common.
pub fn kind_line(plan: &MemberPlan, count: usize) -> String {
    let network = &plan.network;
    if plan.is_ignorant() {
        let weight = significant(plan.weight, 3);
        return format!(
            "{count} that has learned nothing, weight {weight}: all classes are equally probable to it"
        );
    }
    let codes = match plan.bins {
        0 => "columns as they are".to_owned(),
        bins => format!("columns and their codes of up to {bins} bins"),
    };
    let head = match network.head {
        HeadSettings::Gaussian(_) => "constant noise",
        HeadSettings::VarianceNode(_) => "noise that depends on the input",
        HeadSettings::Categorical(_) => "logits",
        _ => "another head",
    };
    let log = if plan.curve.is_some() { ", log of the target" } else { "" };
    format!("{count} alike, weight {} each: {codes}, {:?}, {head}{log}", plan.weight, network.activation)
}

fn scores(model: &Model, targets: &[String]) -> String {
    let mut text = "## How good it is\n\n".to_owned();
    let Some(scores) = model.held_out() else {
        return text
            + "Not known: nothing was held out when it was fitted. `bayespc evaluate` on its table measures models like it.\n\n";
    };
    text += "Of rows predicted by those networks that had not learned from them, ± one standard error:\n\n| score | |\n|---|---|\n";
    let with_error = |value: f64, error: Option<f64>| match error {
        Some(error) => format!("{} ± {}", significant(value, 4), significant(error, 2)),
        None => significant(value, 4),
    };
    let n = model.n_seen();
    let share = |share: f64| with_error(share, (n > 0.0).then(|| (share * (1.0 - share) / n).sqrt()));
    for (k, rmse) in scores.rmse.iter().enumerate() {
        let name =
            targets.get(k).filter(|_| scores.rmse.len() > 1).map_or_else(String::new, |t| format!(" of {t}"));
        let error = scores.rmse_error.get(k).copied();
        let _ =
            writeln!(text, "| root mean squared error{} | {} |", escaped(&name), with_error(*rmse, error));
        let scale = model.target_scaling().scale[k];
        let r2 = 1.0 - (rmse / scale).powi(2);
        let _ = writeln!(text, "| R²{} | {} |", escaped(&name), significant(r2, 3));
    }
    if let Some(accuracy) = scores.accuracy {
        let _ = writeln!(text, "| accuracy | {} |", share(accuracy));
    }
    let density = with_error(scores.log_density, Some(scores.log_density_error));
    let what =
        if scores.accuracy.is_some() { "mean log probability of the class" } else { "mean log density" };
    let _ = writeln!(text, "| {what} | {density} |");
    if let Some(coverage) = scores.coverage_90 {
        let _ = writeln!(text, "| share of targets in 90 % intervals | {} |", share(coverage));
    }
    text + "\nA new row is predicted by all networks, so these scores are on the safe side; they hold for rows like those of \
            the table.\n\n"
}

fn limits(model: &Model) -> String {
    let mut text = "## Limits\n\n".to_owned();
    for warning in model.warnings() {
        let _ = writeln!(text, "- Warning when it was fitted: {}", escaped(warning));
    }
    if model.was_interrupted() {
        text += "- Training was stopped before its end.\n";
    }
    text += "- It knows what its table knew. For rows unlike those the epistemic part grows: look at it before acting on a \
             prediction (`bayespc predict` gives `epistemic_std`).\n\
             - Noise is what the columns at hand cannot explain; more rows will not make it smaller, better columns may.\n\
             - What drives a prediction (`bayespc explain`) is what the model uses, not what causes the target.\n";
    if model.n_seen() < 200.0 {
        let _ = writeln!(
            text,
            "- {} rows are few: its scores have the error bars above, and its choice of networks too.",
            model.n_seen()
        );
    }
    text + "\n"
}

fn use_of(path: &Path) -> String {
    let file = path
        .file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    format!(
        "## How to use it\n\n```sh\nbayespc predict {file} new.csv --out predictions.csv\nbayespc explain {file} new.csv\n```\n\n\
         ```python\nimport bayespc\nmodel = bayespc.load(\"{file}\")\n```\n"
    )
}

/// Text that stays in its cell of a table.
fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
