//! How training went, and what the search tried.

use bayespc::heads::HeadSettings;
use bayespc::model::selection::Candidate;
use bayespc::model::{Member, MemberPlan, Model};

use super::shared::{chart, dots, number};
use crate::error::Result;
use crate::plot::{DotPlot, DotSeries, Line, Panel};
use crate::report::Section;

/// Candidates shown at most.
const MOST: usize = 24;

/// What networks of one kind have in common, in a few words.
fn kind(plan: &MemberPlan) -> String {
    words(
        &plan.network.hidden_layer_sizes,
        plan.bins,
        plan.network.activation.name(),
        &plan.network.head,
        plan.network.prior.var,
        Extras { log_target: plan.curve.is_some(), relevance: !plan.network.prior.input_factors.is_empty() },
    )
}

/// What only some kinds of networks have.
#[derive(Clone, Copy)]
struct Extras {
    log_target: bool,
    /// Inputs have prior variances of their own.
    relevance: bool,
}

fn words(
    widths: &[usize],
    bins: usize,
    activation: &str,
    head: &HeadSettings,
    prior_var: f64,
    extras: Extras,
) -> String {
    let shape = match widths {
        [] => "linear".to_owned(),
        widths => {
            let widths: Vec<String> = widths.iter().map(ToString::to_string).collect();
            format!("{} {activation}", widths.join("-"))
        }
    };
    let codes = if bins > 0 { format!(", {bins} bins") } else { String::new() };
    let head = match head {
        HeadSettings::Gaussian(_) => "",
        HeadSettings::VarianceNode(_) => ", variance node",
        HeadSettings::Categorical(_) => ", logits",
        _ => ", another head",
    };
    let log = if extras.log_target { ", log of the target" } else { "" };
    let columns = if extras.relevance { " by column" } else { "" };
    format!("{shape}{codes}{head}{log}, V⁰ {}{columns}", number(prior_var, 2))
}

/// One line per kind of network: the mean over its networks, within their range.
pub(super) fn training_section(model: &Model, units: &str) -> Result<Option<Section>> {
    let mut kinds: Vec<(String, Vec<&Member>)> = Vec::new();
    for member in model.members().iter().filter(|member| !member.report.loss.is_empty()) {
        let name = kind(&member.plan(0));
        match kinds.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) => members.push(member),
            None => kinds.push((name, vec![member])),
        }
    }
    if kinds.is_empty() {
        return Ok(None);
    }
    let line = |(name, members): &(String, Vec<&Member>), curve: &dyn Fn(&Member) -> Vec<(f64, f64)>| {
        let curves: Vec<Vec<(f64, f64)>> = members.iter().map(|member| curve(member)).collect();
        let longest = curves.iter().max_by_key(|curve| curve.len()).cloned().unwrap_or_default();
        // Of networks that got so far.
        let at = |k: usize| curves.iter().filter_map(move |curve| curve.get(k)).map(|point| point.1);
        let over = |f: &dyn Fn(usize) -> f64| (0..longest.len()).map(f).collect::<Vec<f64>>();
        let band = (members.len() > 1).then(|| {
            (
                over(&|k| at(k).fold(f64::INFINITY, f64::min)),
                over(&|k| at(k).fold(f64::NEG_INFINITY, f64::max)),
            )
        });
        Line {
            label: name.clone(),
            x: longest.iter().map(|point| point.0).collect(),
            y: over(&|k| at(k).sum::<f64>() / at(k).count() as f64),
            band,
            ..Line::default()
        }
    };
    let loss = |member: &Member| {
        member.report.loss.iter().enumerate().map(|(epoch, loss)| ((epoch + 1) as f64, *loss)).collect()
    };
    let mut panels = vec![Panel {
        title: "Learning curve".to_owned(),
        x_label: "epoch".to_owned(),
        y_label: format!("mean squared error ({units})"),
        y_log: true,
        lines: kinds.iter().map(|kind| line(kind, &loss)).collect(),
        ..Panel::default()
    }];
    if model.members().iter().any(|member| !member.report.validation.is_empty()) {
        let validation =
            |member: &Member| member.report.validation.iter().map(|(epoch, d)| (*epoch as f64, *d)).collect();
        panels.push(Panel {
            title: "Validation".to_owned(),
            x_label: "epoch".to_owned(),
            y_label: format!("log density ({units})"),
            lines: kinds.iter().map(|kind| line(kind, &validation)).collect(),
            ..Panel::default()
        });
    }
    let caption = "Error of every batch before it was learned, averaged over each epoch: for each kind of network the mean over \
                   its networks, within their range. Curves that still fall at the end ask for more epochs.";
    Ok(Some(Section { heading: "Training".to_owned(), blocks: vec![chart(&panels, caption)?] }))
}

/// What the search tried, the best first.
pub(super) fn search_section(candidates: &[Candidate]) -> Result<Option<Section>> {
    let mut judged: Vec<(&Candidate, f64)> =
        candidates.iter().filter_map(|candidate| Some((candidate, candidate.density?))).collect();
    if judged.is_empty() {
        return Ok(None);
    }
    let folds = judged.iter().map(|(candidate, _)| candidate.folds).max().unwrap_or(0);
    // Densities of different folds are of different rows: only those of one stage compare.
    let stage = |c: &Candidate| if c.members > 0 { 0 } else { 1 + usize::from(c.folds < folds) };
    judged.sort_by(|a, b| stage(a.0).cmp(&stage(b.0)).then(b.1.total_cmp(&a.1)));
    let left_out = judged.len().saturating_sub(MOST);
    judged.truncate(MOST);
    let series = |label: &str, own: &dyn Fn(&Candidate) -> bool| DotSeries {
        label: label.to_owned(),
        values: judged.iter().map(|(c, density)| if own(c) { *density } else { f64::NAN }).collect(),
        ..DotSeries::default()
    };
    let plot = DotPlot {
        title: "What the search tried".to_owned(),
        value_label: "mean log density of rows it had not learned from".to_owned(),
        groups: judged
            .iter()
            .map(|(c, _)| {
                let extras = Extras { log_target: c.log_target, relevance: c.relevance };
                words(&c.hidden_layer_sizes, c.bins, c.activation.name(), &c.head, c.prior_var, extras)
            })
            .collect(),
        series: vec![
            series("in the model", &|c| stage(c) == 0),
            series("judged by all folds", &|c| stage(c) == 1),
            series("given up early", &|c| stage(c) == 2),
        ],
        ..DotPlot::default()
    };
    let more = if left_out > 0 { format!(" {left_out} worse ones are not shown.") } else { String::new() };
    let caption = format!(
        "Kinds of networks by how they predict rows they had not learned from, the best of each sort first. Kinds are chosen \
         for what they add to the others, so a weaker one may be in. Those given up early were judged by fewer rows: compare \
         them with each other only.{more}"
    );
    Ok(Some(Section { heading: "Search".to_owned(), blocks: vec![dots(&[plot], &caption)?] }))
}
