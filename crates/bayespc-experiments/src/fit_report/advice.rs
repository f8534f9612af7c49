//! What the plots mean and what to do next, in plain sentences.

use super::ScoredRows;
use super::guess::Beside;
use super::shared::{number, percent};

/// Share of the epistemic part below which noise is nearly all, and above which doubt is most.
const NOISE: f64 = 0.15;
const DOUBT: f64 = 0.5;

/// Rows below which scores are rough.
const FEW: usize = 50;

/// What sentences are made of.
pub(super) struct Facts<'a> {
    pub(super) beside: &'a Beside,
    pub(super) n_scored: usize,
    pub(super) scored: ScoredRows,
    /// Median share, over rows, of the epistemic part in the variance of a prediction; none for classes.
    pub(super) epistemic_share: Option<f64>,
    /// Share of targets inside 90 % intervals; none for classes.
    pub(super) coverage: Option<f64>,
    /// Mean distance of confidence from accuracy; none for values.
    pub(super) confidence_gap: Option<f64>,
    /// Columns by importance, the first first.
    pub(super) leading: &'a [String],
    pub(super) warnings: &'a [String],
}

/// One paragraph per thought.
pub(super) fn sentences(facts: &Facts<'_>) -> String {
    let mut said = vec![how_good(facts)];
    if !facts.leading.is_empty() {
        let names: Vec<String> = facts.leading.iter().map(|name| format!("“{name}”")).collect();
        said.push(format!("What matters most to its predictions: {}.", names.join(", ")));
    }
    said.extend(facts.epistemic_share.map(next_step));
    said.extend(facts.coverage.map(|coverage| honesty(coverage, facts.n_scored)));
    if let Some(gap) = facts.confidence_gap {
        said.push(if gap < 0.05 {
            format!("Its probabilities can be taken at their word: they are off by {} on average.", percent(gap))
        } else {
            format!(
                "Its probabilities are off by {} on average: see the reliability plot before using them to decide.",
                percent(gap)
            )
        });
    }
    if facts.scored == ScoredRows::Training {
        said.push(
            "All scores are on the rows it was trained on. Fit with --test-fraction 0.2 to see how it does on others."
                .to_owned(),
        );
    } else if facts.n_scored < FEW {
        said.push(format!(
            "{} rows are few: another split may give other scores. `bayespc evaluate` averages over many.",
            facts.n_scored
        ));
    }
    said.extend(facts.warnings.iter().map(|warning| format!("Warning: {warning}.")));
    said.join("\n\n")
}

fn how_good(facts: &Facts<'_>) -> String {
    if let Some((own, constant)) = facts.beside.accuracy {
        let verdict = if own > constant + 0.02 { "better than" } else { "hardly better than" };
        return format!(
            "It is right for {} of {} rows, {verdict} always naming the most frequent class ({}).",
            percent(own),
            facts.n_scored,
            percent(constant)
        );
    }
    let worst = facts.beside.r2.iter().copied().fold(f64::INFINITY, f64::min);
    let each: Vec<String> = facts.beside.r2.iter().map(|r2| number(*r2, 2)).collect();
    let verdict = match worst {
        r2 if r2 < 0.1 => {
            "the columns say little about the target. Look for columns that could know more, or for a mistake in the table"
        }
        r2 if r2 < 0.5 => "the columns explain some of the target and leave most of it open",
        r2 if r2 < 0.9 => "the columns explain most of the target",
        _ => "the columns explain nearly all of the target; make sure that none of them was made from it",
    };
    format!("R² is {} on {} rows: {verdict}.", each.join(", "), facts.n_scored)
}

fn next_step(share: f64) -> String {
    let part = format!(
        "{} of the predictive variance is epistemic (what more rows would take away)",
        percent(share)
    );
    match share {
        share if share < NOISE => {
            format!("Noise dominates: {part}. More rows like these will hardly help; better columns would.")
        }
        share if share < DOUBT => {
            format!("{part}, the rest is noise. More rows will help some; better columns help with the rest.")
        }
        _ => format!(
            "Doubt dominates: {part}. More rows will help, first of all rows like those whose epistemic_std is largest."
        ),
    }
}

fn honesty(coverage: f64, n: usize) -> String {
    let error = (0.9_f64 * 0.1 / n.max(1) as f64).sqrt();
    let told = format!("its 90 % intervals hold {} of the targets", percent(coverage));
    match (coverage - 0.9) / error {
        z if z < -2.0 => {
            format!("It promises too much: {told}. Widen them, or refit with calibration = conformal.")
        }
        z if z > 2.0 => format!("It is more careful than it need be: {told}."),
        _ => format!("Its intervals keep their word: {told}, as far as {n} rows can tell."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(r2: f64) -> Beside {
        Beside { rows: Vec::new(), r2: vec![r2], accuracy: None }
    }

    fn facts(beside: &Beside, share: f64, coverage: f64) -> Facts<'_> {
        Facts {
            beside,
            n_scored: 200,
            scored: ScoredRows::HeldOut,
            epistemic_share: Some(share),
            coverage: Some(coverage),
            confidence_gap: None,
            leading: &[],
            warnings: &[],
        }
    }

    #[test]
    fn sentences_follow_the_numbers() {
        let said = |r2: f64, share: f64, coverage: f64| sentences(&facts(&beside(r2), share, coverage));
        assert!(said(0.05, 0.05, 0.9).contains("say little"));
        assert!(said(0.8, 0.05, 0.9).contains("better columns would"));
        assert!(said(0.8, 0.7, 0.9).contains("Doubt dominates"));
        assert!(said(0.95, 0.3, 0.7).contains("promises too much"));
        assert!(said(0.95, 0.3, 0.99).contains("more careful"));
        assert!(said(0.95, 0.3, 0.91).contains("keep their word"));
        let few = beside(0.5);
        let rough = sentences(&Facts { n_scored: 10, ..facts(&few, 0.2, 0.9) });
        assert!(rough.contains("bayespc evaluate"));
        let trained = sentences(&Facts { scored: ScoredRows::Training, ..facts(&few, 0.2, 0.9) });
        assert!(trained.contains("--test-fraction"));
    }
}
