//! Asks a model for its outputs, and computes once what several of them share.

use bayespc::Predictive;
use bayespc::prediction::{CLASS_DRAWS, ClassDecomposition};
use faer::{Mat, MatRef};

use super::quantity::{Quantity, Values};
use crate::output::Output;
use crate::problem::Problem;
use crate::request::Asked;
use crate::served::Served;

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
    parts: Option<ClassDecomposition>,
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
        let titles = output.titles(self.served, self.asked.quantiles());
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
            classes.parts =
                Some(self.predictive.class_decomposition(temperature, CLASS_DRAWS.0, CLASS_DRAWS.1)?);
        }
        Ok(classes)
    }

    fn parts(&mut self) -> Result<&ClassDecomposition, Problem> {
        self.classes(true)?.parts.as_ref().ok_or_else(|| Problem::defect("no decomposition"))
    }
}

/// Standard deviation of each class's probability under the posterior, `K × n`.
pub fn probability_std(served: &Served, predictive: &Predictive) -> Result<Mat<f64>, Problem> {
    let variance =
        predictive.class_probability_variance(served.model.temperature(), CLASS_DRAWS.0, CLASS_DRAWS.1)?;
    Ok(Mat::from_fn(variance.nrows(), variance.ncols(), |k, j| variance[(k, j)].max(0.0).sqrt()))
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
fn entropy(probabilities: &[f64]) -> f64 {
    -probabilities.iter().map(|&p| if p > 0.0 { p * p.ln() } else { 0.0 }).sum::<f64>()
}
