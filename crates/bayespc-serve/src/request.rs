//! What a caller asks besides the rows: outputs, the level of intervals, quantiles, what to do about unseen values.

use serde_json::{Map, Value};

use crate::output::Output;
use crate::problem::Problem;

/// Probability that a value lies between lower and upper, unless another is asked for.
pub const LEVEL: f64 = 0.9;

/// Quantiles that are given where they are asked for without saying which.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// Quantiles at most.
const MOST: usize = 1000;

/// Parameters of other servers that change no number here.
const ELSEWHERE: [&str; 8] = [
    "binary_data_output",
    "content_type",
    "headers",
    "priority",
    "timeout",
    "sequence_id",
    "sequence_start",
    "sequence_end",
];

/// Parameters of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Probability of the interval.
    pub level: f64,
    /// Probabilities of the quantiles.
    pub quantiles: Vec<f64>,
    /// Whether values of a category may be new.
    pub unseen: bool,
    /// What to answer; everything usual if nothing is said.
    pub outputs: Option<Vec<Output>>,
}

impl Default for Asked {
    fn default() -> Self {
        Self { level: LEVEL, quantiles: Vec::new(), unseen: false, outputs: None }
    }
}

impl Asked {
    /// From an object of parameters.
    pub fn of(parameters: Option<&Map<String, Value>>) -> Result<Self, Problem> {
        let mut asked = Self::default();
        for (name, value) in parameters.into_iter().flatten() {
            match name.as_str() {
                "level" => asked.level = probability(name, value)?,
                "quantiles" => asked.quantiles = probabilities(name, value)?,
                "unseen" => {
                    asked.unseen = match value.as_str() {
                        Some("allow") => true,
                        Some("refuse") => false,
                        _ => {
                            return Err(Problem::bad("parameter `unseen` is \"allow\" or \"refuse\"")
                                .value(value.to_string()));
                        }
                    }
                }
                name if ELSEWHERE.contains(&name) => {}
                _ => {
                    return Err(Problem::bad(format!(
                        "there is no parameter `{name}`: known are level, quantiles and unseen"
                    ))
                    .value(name));
                }
            }
        }
        Ok(asked)
    }

    /// The same with a level from text, as a query has it.
    pub fn with_level(mut self, level: Option<&str>) -> Result<Self, Problem> {
        if let Some(text) = level {
            let number = text.parse::<f64>().map_or(Value::Null, Value::from);
            self.level = probability("level", &number)?;
        }
        Ok(self)
    }

    /// Probabilities of the quantiles that are given.
    pub fn quantiles(&self) -> &[f64] {
        if self.quantiles.is_empty() { &QUANTILES } else { &self.quantiles }
    }
}

fn probability(name: &str, value: &Value) -> Result<f64, Problem> {
    value.as_f64().filter(|p| *p > 0.0 && *p < 1.0).ok_or_else(|| {
        Problem::bad(format!("parameter `{name}`: {value} is not a number between 0 and 1"))
            .value(value.to_string())
    })
}

/// A list, or texts with commas between for protocols whose parameters are no lists.
fn probabilities(name: &str, value: &Value) -> Result<Vec<f64>, Problem> {
    let list: Vec<Value> = match value {
        Value::Array(list) => list.clone(),
        Value::String(text) => {
            text.split(',').map(|part| part.trim().parse::<f64>().map_or(Value::Null, Value::from)).collect()
        }
        other => vec![other.clone()],
    };
    if list.is_empty() || list.len() > MOST {
        return Err(Problem::bad(format!("parameter `{name}` has {} entries: give 1 to {MOST}", list.len())));
    }
    list.iter().map(|value| probability(name, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: &Value) -> Result<Asked, Problem> {
        Asked::of(value.as_object())
    }

    #[test]
    fn parameters_are_read_and_checked() {
        let asked =
            of(&json!({"level": 0.5, "quantiles": [0.1, 0.9], "unseen": "allow", "priority": 3})).unwrap();
        assert_eq!((asked.level, asked.quantiles(), asked.unseen), (0.5, &[0.1, 0.9][..], true));
        assert_eq!(of(&json!({"quantiles": "0.1, 0.9"})).unwrap().quantiles, [0.1, 0.9]);
        for (wrong, word) in [
            (json!({"level": 1.0}), "level"),
            (json!({"level": "high"}), "level"),
            (json!({"quantiles": []}), "quantiles"),
            (json!({"quantiles": [0.5, 2]}), "2"),
            (json!({"quantiles": "0.5,x"}), "quantiles"),
            (json!({"unseen": true}), "unseen"),
            (json!({"levle": 0.9}), "levle"),
        ] {
            let problem = of(&wrong).unwrap_err();
            assert!(problem.message.contains(word), "{wrong}: {}", problem.message);
        }
    }
}
