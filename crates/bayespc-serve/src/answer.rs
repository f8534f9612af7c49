//! Predictions by name, for every protocol.
//!
//! | values         | classes                 |                                                            |
//! |----------------|-------------------------|------------------------------------------------------------|
//! | mean, std      | class, probabilities    | what is predicted                                          |
//! | aleatoric_std  | aleatoric_entropy       | noise: more rows would not take it away                    |
//! | epistemic_std  | epistemic_entropy, probability_std | ignorance: more rows would                      |
//! | lower, upper   | entropy                 | the central interval of `level`                            |
//! | quantiles      |                         | on request                                                 |
//! | ood_score      | ood_score               | how unlike the rows learned from; above 1 is unusual       |

use bayespc::Predictive;
use faer::{Mat, MatRef};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::problem::Problem;
use crate::request::Asked;
use crate::served::Served;

/// Draws behind the two parts of an entropy, and their seed.
pub const DRAWS: (usize, u64) = (64, 0);

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
    fn is_usual(self) -> bool {
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
}

/// Values of an output, row after row.
pub struct Quantity {
    pub output: Output,
    /// Extents behind that of the rows.
    extents: Vec<usize>,
    /// What each value of a row is called where it stands alone.
    titles: Vec<String>,
    values: Values,
    n: usize,
}

enum Values {
    Numbers(Vec<f64>),
    Texts(Vec<String>),
}

/// What a model says of inputs.
pub struct Answer {
    pub quantities: Vec<Quantity>,
    pub ood: Vec<f64>,
}

/// Ask a model.
pub fn answer(served: &Served, features: &Mat<f64>, asked: &Asked) -> Result<Answer, Problem> {
    let usual =
        |output: &&Output| output.is_usual() || **output == Output::Quantiles && !asked.quantiles.is_empty();
    let outputs: Vec<Output> =
        asked.outputs.clone().unwrap_or_else(|| Output::all(served).iter().filter(usual).copied().collect());
    let predictive = served.model.predict(features)?;
    let ood = served.model.unlike(features, &predictive);
    let mut maker =
        Maker { served, predictive: &predictive, asked, ood: &ood, interval: None, classes: None };
    let quantities = outputs.into_iter().map(|output| maker.quantity(output)).collect::<Result<_, _>>()?;
    Ok(Answer { quantities, ood })
}

/// Makes quantities, and computes once what several share.
struct Maker<'a> {
    served: &'a Served,
    predictive: &'a Predictive,
    asked: &'a Asked,
    ood: &'a [f64],
    interval: Option<(Mat<f64>, Mat<f64>)>,
    classes: Option<Classes>,
}

/// What is known of classes.
struct Classes {
    probabilities: Mat<f64>,
    parts: Option<bayespc::prediction::ClassDecomposition>,
}

impl Maker<'_> {
    fn quantity(&mut self, output: Output) -> Result<Quantity, Problem> {
        let n = self.predictive.n_samples();
        let values = match output {
            Output::Mean => by_rows(self.predictive.mean().as_ref()),
            Output::Std => by_rows(self.predictive.std().as_ref()),
            Output::AleatoricStd => roots(&self.predictive.aleatoric_variance()),
            Output::EpistemicStd => roots(&self.predictive.epistemic_variance()),
            Output::Lower => by_rows(self.interval()?.0.as_ref()),
            Output::Upper => by_rows(self.interval()?.1.as_ref()),
            Output::Quantiles => {
                let each = self.predictive.quantile(self.asked.quantiles())?;
                let d = self.predictive.n_targets();
                (0..n)
                    .flat_map(|j| {
                        (0..d).flat_map({
                            let each = &each;
                            move |i| each.iter().map(move |q| q[(i, j)])
                        })
                    })
                    .collect()
            }
            Output::OodScore => self.ood.to_vec(),
            Output::Class => {
                let names = self.served.classes.clone().unwrap_or_default();
                let p = &self.classes(false)?.probabilities;
                let texts = (0..n).map(|j| names.get(likeliest(p, j)).cloned().unwrap_or_default()).collect();
                return Ok(self.finished(output, Values::Texts(texts)));
            }
            Output::Probabilities => by_rows(self.classes(false)?.probabilities.as_ref()),
            Output::Entropy => {
                let p = &self.classes(false)?.probabilities;
                (0..n).map(|j| entropy(p.col_as_slice(j))).collect()
            }
            Output::ProbabilityStd => by_rows(probability_std(self.served, self.predictive)?.as_ref()),
            Output::AleatoricEntropy => self.parts()?.aleatoric.clone(),
            Output::EpistemicEntropy => self.parts()?.epistemic.clone(),
        };
        Ok(self.finished(output, Values::Numbers(values)))
    }

    fn finished(&self, output: Output, values: Values) -> Quantity {
        let extents: Vec<usize> = output
            .extents(self.served)
            .into_iter()
            .map(|extent| extent.unwrap_or(self.asked.quantiles().len()))
            .collect();
        let titles = titles(output, self.served, self.asked);
        Quantity { output, extents, titles, values, n: self.predictive.n_samples() }
    }

    fn interval(&mut self) -> Result<&(Mat<f64>, Mat<f64>), Problem> {
        if self.interval.is_none() {
            self.interval = Some(self.predictive.interval(self.asked.level)?);
        }
        self.interval.as_ref().ok_or_else(|| Problem::defect("no interval"))
    }

    fn classes(&mut self, with_parts: bool) -> Result<&Classes, Problem> {
        let temperature = self.served.model.temperature();
        if self.classes.is_none() {
            let probabilities = self.predictive.class_probabilities(temperature)?;
            self.classes = Some(Classes { probabilities, parts: None });
        }
        let classes = self.classes.as_mut().ok_or_else(|| Problem::defect("no classes"))?;
        if with_parts && classes.parts.is_none() {
            classes.parts = Some(self.predictive.class_decomposition(temperature, DRAWS.0, DRAWS.1)?);
        }
        Ok(classes)
    }

    fn parts(&mut self) -> Result<&bayespc::prediction::ClassDecomposition, Problem> {
        self.classes(true)?.parts.as_ref().ok_or_else(|| Problem::defect("no decomposition"))
    }
}

/// Standard deviation of each class's probability under the posterior, `K × n`.
pub fn probability_std(served: &Served, predictive: &Predictive) -> Result<Mat<f64>, Problem> {
    let variance = predictive.class_probability_variance(served.model.temperature(), DRAWS.0, DRAWS.1)?;
    Ok(Mat::from_fn(variance.nrows(), variance.ncols(), |k, j| variance[(k, j)].max(0.0).sqrt()))
}

/// What each value of a row is called where all stand side by side, as `bayespc predict` calls it.
fn titles(output: Output, served: &Served, asked: &Asked) -> Vec<String> {
    let several = served.targets.len() > 1;
    let of_target = |target: &String, name: &str| {
        if several { format!("{target}_{name}") } else { name.to_owned() }
    };
    let classes = || served.classes.iter().flatten();
    match output {
        Output::Class
        | Output::Entropy
        | Output::AleatoricEntropy
        | Output::EpistemicEntropy
        | Output::OodScore => {
            vec![output.name().to_owned()]
        }
        Output::Probabilities => classes().map(|class| format!("probability_{class}")).collect(),
        Output::ProbabilityStd => classes().map(|class| format!("probability_std_{class}")).collect(),
        Output::Quantiles => {
            let levels = |target| asked.quantiles().iter().map(move |p| of_target(target, &format!("q{p}")));
            served.targets.iter().flat_map(levels).collect()
        }
        _ => served.targets.iter().map(|target| of_target(target, output.name())).collect(),
    }
}

/// The columns of a matrix one after the other: samples are columns, and rows of a request.
fn by_rows(matrix: MatRef<'_, f64>) -> Vec<f64> {
    let (d, n) = (matrix.nrows(), matrix.ncols());
    (0..n).flat_map(|j| (0..d).map(move |i| matrix[(i, j)])).collect()
}

fn roots(variances: &Mat<f64>) -> Vec<f64> {
    let mut roots = by_rows(variances.as_ref());
    for x in &mut roots {
        *x = x.sqrt();
    }
    roots
}

/// The class of the largest probability, the first of equals.
pub fn likeliest(probabilities: &Mat<f64>, sample: usize) -> usize {
    let likelier = |best: usize, k: usize| {
        if probabilities[(k, sample)] > probabilities[(best, sample)] { k } else { best }
    };
    (1..probabilities.nrows()).fold(0, likelier)
}

/// −Σ p log p.
pub fn entropy(probabilities: &[f64]) -> f64 {
    -probabilities.iter().map(|&p| if p > 0.0 { p * p.ln() } else { 0.0 }).sum::<f64>()
}

impl Quantity {
    /// What each value of a row is called.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.titles.iter().map(String::as_str)
    }

    /// The values of row `i` with what they are called.
    pub fn entries(&self, i: usize) -> impl Iterator<Item = (String, serde_json::Value)> {
        let width = self.titles.len();
        self.titles.iter().enumerate().map(move |(k, title)| {
            let value = match &self.values {
                Values::Numbers(values) => serde_json::json!(values[i * width + k]),
                Values::Texts(values) => serde_json::json!(values[i * width + k]),
            };
            (title.clone(), value)
        })
    }

    /// The largest value of row `i`, each divided by a scale of its own; 0 for texts.
    pub fn largest(&self, i: usize, scales: &[f64]) -> f64 {
        let width = self.titles.len();
        match &self.values {
            Values::Numbers(values) => {
                let row = values[i * width..(i + 1) * width].iter().zip(scales);
                row.map(|(x, scale)| x / scale).fold(0.0, f64::max)
            }
            Values::Texts(_) => 0.0,
        }
    }
}

/// As a tensor of the Open Inference Protocol.
impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shape: Vec<usize> = std::iter::once(self.n).chain(self.extents.iter().copied()).collect();
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("name", self.output.name())?;
        map.serialize_entry("datatype", self.output.datatype())?;
        map.serialize_entry("shape", &shape)?;
        match &self.values {
            Values::Numbers(values) => map.serialize_entry("data", values)?,
            Values::Texts(values) => map.serialize_entry("data", values)?,
        }
        map.end()
    }
}

/// Quantities as a list with an object for each row.
pub struct Records<'a>(pub &'a [Quantity]);

impl Serialize for Records<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let n = self.0.first().map_or(0, |quantity| quantity.n);
        let mut rows = serializer.serialize_seq(Some(n))?;
        (0..n).try_for_each(|i| rows.serialize_element(&Record(self.0, i)))?;
        rows.end()
    }
}

struct Record<'a>(&'a [Quantity], usize);

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for quantity in self.0 {
            let width = quantity.titles.len();
            for (k, title) in quantity.titles.iter().enumerate() {
                match &quantity.values {
                    Values::Numbers(values) => map.serialize_entry(title, &values[self.1 * width + k])?,
                    Values::Texts(values) => map.serialize_entry(title, &values[self.1 * width + k])?,
                }
            }
        }
        map.end()
    }
}

/// Quantities as CSV text, with other columns of texts before them.
pub fn csv(quantities: &[Quantity], n: usize) -> String {
    let mut lines =
        vec![quantities.iter().flat_map(|q| &q.titles).map(|t| quoted(t)).collect::<Vec<_>>().join(",")];
    for i in 0..n {
        let cells = quantities.iter().flat_map(|quantity| {
            let width = quantity.titles.len();
            (0..width).map(move |k| match &quantity.values {
                Values::Numbers(values) => values[i * width + k].to_string(),
                Values::Texts(values) => quoted(&values[i * width + k]),
            })
        });
        lines.push(cells.collect::<Vec<_>>().join(","));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// A cell of CSV, in quotes where it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
