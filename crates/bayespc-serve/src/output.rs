//! The outputs of a model: their names, types and shapes, and what their values are called one by one.

use crate::problem::Problem;
use crate::served::Served;

/// A named output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Mean,
    Std,
    AleatoricStd,
    EpistemicStd,
    Lower,
    Upper,
    Quantiles,
    Class,
    Probabilities,
    ProbabilityStd,
    Entropy,
    AleatoricEntropy,
    EpistemicEntropy,
    OodScore,
}

impl Output {
    const VALUES: [Self; 8] = [
        Self::Mean,
        Self::Std,
        Self::AleatoricStd,
        Self::EpistemicStd,
        Self::Lower,
        Self::Upper,
        Self::Quantiles,
        Self::OodScore,
    ];
    const CLASSES: [Self; 7] = [
        Self::Class,
        Self::Probabilities,
        Self::ProbabilityStd,
        Self::Entropy,
        Self::AleatoricEntropy,
        Self::EpistemicEntropy,
        Self::OodScore,
    ];

    /// What a model can be asked for.
    pub fn all(served: &Served) -> &'static [Self] {
        if served.is_classifier() { &Self::CLASSES } else { &Self::VALUES }
    }

    /// Whether it is given when nothing is said. What takes draws, or needs levels, is not.
    pub fn is_usual(self) -> bool {
        !matches!(
            self,
            Self::Quantiles | Self::ProbabilityStd | Self::AleatoricEntropy | Self::EpistemicEntropy
        )
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::Std => "std",
            Self::AleatoricStd => "aleatoric_std",
            Self::EpistemicStd => "epistemic_std",
            Self::Lower => "lower",
            Self::Upper => "upper",
            Self::Quantiles => "quantiles",
            Self::Class => "class",
            Self::Probabilities => "probabilities",
            Self::ProbabilityStd => "probability_std",
            Self::Entropy => "entropy",
            Self::AleatoricEntropy => "aleatoric_entropy",
            Self::EpistemicEntropy => "epistemic_entropy",
            Self::OodScore => "ood_score",
        }
    }

    /// The output of a model that has this name.
    pub fn named(served: &Served, name: &str) -> Result<Self, Problem> {
        let all = Self::all(served);
        all.iter().copied().find(|output| output.name() == name).ok_or_else(|| {
            let names = all.iter().map(|output| output.name()).collect::<Vec<_>>().join(", ");
            Problem::bad(format!("there is no output `{name}`: the model has {names}")).value(name)
        })
    }

    pub fn datatype(self) -> &'static str {
        if self == Self::Class { "BYTES" } else { "FP64" }
    }

    /// Extents behind that of the rows; none where the request decides.
    pub fn extents(self, served: &Served) -> Vec<Option<usize>> {
        let targets = if served.targets.len() > 1 { vec![Some(served.targets.len())] } else { Vec::new() };
        match self {
            Self::Mean | Self::Std | Self::AleatoricStd | Self::EpistemicStd | Self::Lower | Self::Upper => {
                targets
            }
            Self::Quantiles => [targets, vec![None]].concat(),
            Self::Probabilities | Self::ProbabilityStd => vec![served.classes.as_ref().map(Vec::len)],
            _ => Vec::new(),
        }
    }

    /// What each value of a row is called where all stand side by side, as `bayespc predict` calls it.
    pub fn titles(self, served: &Served, quantiles: &[f64]) -> Vec<String> {
        let several = served.targets.len() > 1;
        let of_target = |target: &String, name: &str| {
            if several { format!("{target}_{name}") } else { name.to_owned() }
        };
        let classes = || served.classes.iter().flatten();
        match self {
            Self::Class
            | Self::Entropy
            | Self::AleatoricEntropy
            | Self::EpistemicEntropy
            | Self::OodScore => {
                vec![self.name().to_owned()]
            }
            Self::Probabilities => classes().map(|class| format!("probability_{class}")).collect(),
            Self::ProbabilityStd => classes().map(|class| format!("probability_std_{class}")).collect(),
            Self::Quantiles => {
                let levels = |target| quantiles.iter().map(move |p| of_target(target, &format!("q{p}")));
                served.targets.iter().flat_map(levels).collect()
            }
            _ => served.targets.iter().map(|target| of_target(target, self.name())).collect(),
        }
    }
}
