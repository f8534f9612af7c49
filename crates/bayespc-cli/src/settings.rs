//! Model settings from a preset, a TOML file and `--set` flags, in this order, through one serde struct.
//!
//! A flag changes one entry and leaves its neighbours, except where it chooses another variant: with
//! `rule.kind = "relaxation"` or `init.he` what was set of the old variant no longer means anything.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bayespc::ModelSettings;
use clap::{Args, ValueEnum};
use serde::Deserialize;
use toml::{Table, Value};

use crate::failure::{did_you_mean, usage};

/// Flags that fill the model's settings.
#[derive(Args, Clone, Debug)]
pub struct SettingsArgs {
    /// Settings to start from
    #[arg(long, value_enum, default_value_t = Preset::Default)]
    pub preset: Preset,
    /// TOML file with settings; what it leaves out keeps its default
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change one setting, as in `--set training.epochs=200`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of initial weights, shuffles and the hold-out
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Whether each network's codes, prior, activation, noise and width are chosen by held-out density, but for those that
    /// were set; `--set search.folds=3` and the like say how
    #[arg(long, value_enum, default_value_t = Search::Auto)]
    pub search: Search,
    /// Seconds that fitting may take: the best model that can be trained in them
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<f64>,
}

/// Whether settings are chosen from the training data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Search {
    /// As the preset has it
    #[default]
    Auto,
    /// Never: the settings are used as they are
    Off,
}

/// Named settings, the same in Rust, Python and here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Five networks by the feedback rule, each chosen from the data
    Default,
    /// One network, nothing searched
    Fast,
    /// Relaxation as the paper prints it
    Paper,
}

impl SettingsArgs {
    /// The settings, checked, where `adapt` changes what the preset leaves to file and flags.
    pub fn settings_onto(&self, adapt: impl FnOnce(ModelSettings) -> ModelSettings) -> Result<ModelSettings> {
        let preset = adapt(match self.preset {
            Preset::Default => ModelSettings::default(),
            Preset::Fast => ModelSettings::fast(),
            Preset::Paper => ModelSettings::paper(),
        });
        let mut value = Value::try_from(&preset).context("the preset cannot be written as TOML")?;
        let mut given = Vec::new();
        if let Some(path) = &self.config {
            given.push(read_config(&mut value, path)?);
        }
        for flag in &self.set {
            given.push(apply_flag(&mut value, flag)?);
        }
        let mut settings = parse(&value).map_err(|error| usage(tidy(&error)))?;
        keep_what_was_given(&mut settings, &given);
        if let Some(seed) = self.seed {
            settings.training.seed = seed;
        }
        if self.time_limit.is_some() {
            settings.time_limit = self.time_limit;
        }
        if self.search == Search::Off {
            settings.search.enabled = false;
        }
        settings.validate().map_err(|error| usage(error.to_string()))?;
        Ok(settings)
    }
}

/// What was set by hand is not chosen from the data, unless the search was told to.
fn keep_what_was_given(settings: &mut ModelSettings, given: &[Value]) {
    let holds =
        |value: &Value, path: &[&str]| path.iter().try_fold(value, |value, key| value.get(key)).is_some();
    let has = |path: &[&str]| given.iter().any(|value| holds(value, path));
    let search = &mut settings.search;
    if has(&["network", "prior"]) && !has(&["search", "prior_vars"]) {
        search.prior_vars.clear();
    }
    if has(&["network", "activation"]) && !has(&["search", "activations"]) {
        search.activations.clear();
    }
    if has(&["bins"]) && !has(&["search", "bins"]) {
        search.bins.clear();
    }
    if has(&["network", "head"]) && !has(&["search", "noise"]) {
        search.noise = false;
    }
}

/// Put a settings file on top of `value`; returns what the file says.
fn read_config(value: &mut Value, path: &Path) -> Result<Value> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read settings file {name}"))?;
    let table: Table =
        toml::from_str(&text).map_err(|error| usage(format!("settings file {name}: {error}")))?;
    let table = Value::Table(table);
    overlay(value, table.clone());
    parse(value).map_err(|error| {
        // Read on its own, the file may give the same error with its line.
        let alone = toml::from_str::<ModelSettings>(&text).err();
        let error = alone.filter(|alone| alone.message() == error.message()).unwrap_or(error);
        usage(format!("settings file {name}: {}{}", error.to_string().trim_end(), suggestion(&error)))
    })?;
    Ok(table)
}

/// Put one flag on top of `value`; returns what it says.
fn apply_flag(value: &mut Value, flag: &str) -> Result<Value> {
    let (key, setting) = flag.split_once('=').filter(|(key, _)| !key.trim().is_empty()).ok_or_else(|| {
        usage(format!("--set {flag}: write it as KEY=VALUE, as in --set training.epochs=200"))
    })?;
    // A word that is no TOML value is meant as text: activation=tanh.
    let quoted = Value::String(setting.trim().to_owned());
    let table = toml::from_str::<Table>(&format!("{key} = {setting}"))
        .or_else(|_| toml::from_str::<Table>(&format!("{key} = {quoted}")))
        .map_err(|error| usage(format!("--set {flag}: {}", error.message())))?;
    let table = Value::Table(table);
    overlay(value, table.clone());
    parse(value).map_err(|error| usage(format!("--set {flag}: {}", tidy(&error))))?;
    Ok(table)
}

fn parse(value: &Value) -> Result<ModelSettings, toml::de::Error> {
    ModelSettings::deserialize(value.clone())
}

/// Put `over` on top of `base`, entry by entry.
fn overlay(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Table(base), Value::Table(over)) if same_variant(base, &over) => {
            for (key, value) in over {
                match base.get_mut(&key) {
                    Some(slot) => overlay(slot, value),
                    None => {
                        base.insert(key, value);
                    }
                }
            }
        }
        (base, over) => *base = over,
    }
}

/// Whether two tables describe the same variant, so far as they describe one: by their `kind`, or by
/// their only key.
fn same_variant(base: &Table, over: &Table) -> bool {
    match (base.get("kind"), over.get("kind")) {
        (Some(base), Some(over)) => base == over,
        (Some(_), None) => true,
        _ => base.len() != 1 || over.len() != 1 || base.keys().eq(over.keys()),
    }
}

/// The error on one line, with a suggestion.
fn tidy(error: &toml::de::Error) -> String {
    let lines: Vec<_> = error.to_string().lines().map(|line| line.trim().to_owned()).collect();
    format!("{}{}", lines.join(" "), suggestion(error))
}

/// What may have been meant by an unknown field, from serde's own list: ``unknown field `x`, expected one
/// of `y`, `z` ``.
fn suggestion(error: &toml::de::Error) -> String {
    let message = error.message();
    let mut quoted = message.split('`').skip(1).step_by(2);
    match (message.starts_with("unknown"), quoted.next()) {
        (true, Some(typed)) => did_you_mean(typed, quoted),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bayespc::inference::{ActivityOptimiser, HiddenPrecision, RelaxationSettings, Variables};
    use bayespc::learners::Rule;
    use bayespc::prediction::Method;

    fn with(preset: Preset, set: &[&str]) -> Result<ModelSettings> {
        let set = set.iter().map(|&flag| flag.to_owned()).collect();
        SettingsArgs { preset, config: None, set, seed: None, search: Search::Auto, time_limit: None }
            .settings_onto(|preset| preset)
    }

    fn load(set: &[&str]) -> Result<ModelSettings> {
        with(Preset::Default, set)
    }

    #[test]
    fn errors_and_residual_layers_are_asked_for_as_the_page_on_deep_networks_says() {
        let settings = load(&[
            "rule.kind=relaxation",
            "rule.variables=errors",
            "rule.optimiser={gradient={}}",
            "rule.hidden_precision={tied=1.0}",
            "network.residual=true",
        ]);
        let settings = settings.unwrap();
        let expected = RelaxationSettings {
            variables: Variables::Errors,
            optimiser: ActivityOptimiser::Gradient { rate: None },
            hidden_precision: HiddenPrecision::Tied(1.0),
            ..RelaxationSettings::paper()
        };
        assert_eq!((settings.rule, settings.network.residual), (Rule::Relaxation(expected), true));
        let refused = load(&["rule.kind=relaxation", "rule.variables=errors", "rule.sweep=sequential"]);
        assert!(refused.unwrap_err().to_string().contains("relaxation.variables = errors"));
    }

    #[test]
    fn without_flags_the_settings_are_those_of_the_preset() {
        assert_eq!(load(&[]).unwrap(), ModelSettings::default());
        assert_eq!(with(Preset::Fast, &[]).unwrap(), ModelSettings::fast());
        assert_eq!(with(Preset::Paper, &[]).unwrap(), ModelSettings::paper());
    }

    #[test]
    fn a_flag_changes_one_entry_and_leaves_its_neighbours() {
        let settings = load(&["network.prior.var=1", "network.prior.input_layer_var = 0.5"]);
        // An integer where a number is meant is a number.
        let prior = settings.unwrap().network.prior;
        assert_eq!((prior.var, prior.input_layer_var, prior.scale), (1.0, Some(0.5), 1000.0));
    }

    #[test]
    fn what_is_set_by_hand_is_not_chosen_unless_the_search_is_told_to() {
        let search = load(&["search.folds=3", "search.prior_vars=[1, 2]"]).unwrap().search;
        assert_eq!((search.folds, search.prior_vars), (3, vec![1.0, 2.0]));
        assert!(load(&["bins=8"]).unwrap().search.bins.is_empty());
        let search = load(&["network.prior.var=1"]).unwrap().search;
        assert!(search.prior_vars.is_empty() && search.noise && !search.activations.is_empty());
        let search = load(&["network.activation=relu", "network.head.kind=variance_node"]).unwrap().search;
        assert!(search.activations.is_empty() && !search.noise && !search.prior_vars.is_empty());
        let search = load(&["network.prior.var=1", "search.prior_vars=[2]"]).unwrap().search;
        assert_eq!(search.prior_vars, [2.0]);
        let error = load(&["search.folds=1"]).unwrap_err().to_string();
        assert!(error.contains("search.folds = 1"), "{error}");
        let error = load(&["search.fold=2"]).unwrap_err().to_string();
        assert!(error.contains("did you mean `folds`?"), "{error}");
    }

    #[test]
    fn a_word_needs_no_quotes() {
        let settings = load(&["network.activation=tanh"]).unwrap();
        assert_eq!(settings.network.activation, bayespc::Activation::Tanh);
    }

    #[test]
    fn a_flag_within_a_variant_keeps_the_variant() {
        let Rule::Feedback(rule) = load(&["rule.gain=0.3"]).unwrap().rule else { panic!() };
        assert_eq!(rule.gain, 0.3);
    }

    #[test]
    fn another_variant_starts_from_its_own_defaults() {
        let settings = load(&["rule.kind=relaxation", "rule.steps=7", "network.init=he"]).unwrap();
        let Rule::Relaxation(rule) = settings.rule else { panic!() };
        assert_eq!(rule.steps, 7);
        let settings = load(&["rule.schedule.constant.rate=0.1"]).unwrap();
        let Rule::Feedback(rule) = settings.rule else { panic!() };
        assert_eq!(rule.schedule, bayespc::learning::Schedule::Constant { rate: 0.1 });
    }

    #[test]
    fn the_full_batch_has_a_word_and_a_method_needs_no_details() {
        let settings = load(&["training.batch_size=full", "method.monte_carlo.draws=5"]).unwrap();
        assert_eq!(settings.training.batch_size, None);
        assert_eq!(settings.method, Method::MonteCarlo { draws: 5, seed: 0, layer_noise: true });
        // Written down and read again, as the report's settings are.
        let text = toml::to_string(&settings).unwrap();
        assert!(text.contains("batch_size = \"full\""), "{text}");
        assert_eq!(toml::from_str::<ModelSettings>(&text).unwrap(), settings);
        let settings = load(&["training.batch_size=full", "training.batch_size=64"]).unwrap();
        assert_eq!(settings.training.batch_size, Some(64));
        assert_eq!(load(&["training.epochs=3"]).unwrap().training.batch_size, Some(32));
        let error = load(&["training.batch_size=fulll"]).unwrap_err().to_string();
        assert!(error.contains("a number of samples or \"full\""), "{error}");
    }

    #[test]
    fn an_unknown_setting_is_named_with_the_closest_one() {
        let error = load(&["network.prior.vars=1"]).unwrap_err().to_string();
        assert!(error.contains("vars") && error.contains("did you mean `var`?"), "{error}");
        let error = load(&["training.epochs"]).unwrap_err().to_string();
        assert!(error.contains("KEY=VALUE"), "{error}");
        let error = load(&["training.epochs=many"]).unwrap_err().to_string();
        assert!(error.contains("training.epochs=many") && error.contains("invalid type"), "{error}");
        let error = load(&["network.prior.var=-1"]).unwrap_err().to_string();
        assert!(error.contains("prior.var = -1"), "{error}");
    }
}
