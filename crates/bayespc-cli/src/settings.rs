//! Model settings from a preset, a TOML file and `--set` flags, in this order, through one serde struct.
//!
//! A flag changes one entry and leaves its neighbours, except where it chooses another variant: with
//! `rule.kind = "relaxation"` or `init.he` what was set of the old variant no longer means anything.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bayespc::model::selection::{self, SearchSettings};
use bayespc::model::{Model, ModelSettings, Progress, Targets};
use clap::{Args, ValueEnum};
use faer::MatRef;
use serde::Deserialize;
use toml::{Table, Value};

use crate::failure::{did_you_mean, usage};

/// Networks of the default ensemble: most of what more of them would bring, at a cost that is still seconds.
pub const MEMBERS: usize = 5;

/// Name of the table of settings that says what the search tries.
const SEARCH: &str = "search";

/// Flags that fill the model's settings.
#[derive(Args, Clone, Debug)]
pub struct SettingsArgs {
    /// Settings to start from
    #[arg(long, value_enum, default_value_t = Preset::Feedback)]
    pub preset: Preset,
    /// TOML file with settings; what it leaves out keeps its default
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Change one setting, as in `--set training.epochs=200`; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seed of initial weights, shuffles and the hold-out
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Choose each network's prior width, activation and noise model by held-out density, unless prior or head
    /// was set; `--set search.rounds=3` and the like say how
    #[arg(long, value_enum, default_value_t = Search::Auto)]
    pub search: Search,
}

/// Whether settings are chosen from the training data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Search {
    /// With the feedback preset, where prior and head are left alone
    #[default]
    Auto,
    /// Never: the settings are used as they are
    Off,
}

/// Settings, and whether to choose part of them from the training data.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The settings.
    pub settings: ModelSettings,
    /// What to choose the members of the ensemble from, if they are to be chosen first.
    pub search: Option<SearchSettings>,
}

impl Plan {
    /// Choose what is to be chosen, then fit.
    pub fn fit(
        &self,
        input: MatRef<'_, f64>,
        targets: Targets<'_>,
        progress: &mut dyn Progress,
    ) -> Result<Model> {
        Ok(match &self.search {
            None => Model::fit(input, targets, None, &self.settings, progress)?,
            Some(search) => {
                selection::choose_and_fit(input, targets, None, &self.settings, search, progress)?
            }
        })
    }
}

/// Named settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// Errors by feedback, five networks: fast, and the default
    Feedback,
    /// Relaxation as the paper prints it
    Paper,
}

impl SettingsArgs {
    /// What to do, checked, where `adapt` changes what the preset leaves to file and flags. Members are chosen
    /// from the data where prior and head were left alone.
    pub fn plan_onto(&self, adapt: impl FnOnce(ModelSettings) -> ModelSettings) -> Result<Plan> {
        let preset = adapt(match self.preset {
            Preset::Feedback => ModelSettings { members: MEMBERS, ..ModelSettings::default() },
            Preset::Paper => ModelSettings::paper(),
        });
        let mut value = Value::try_from(&preset).context("the preset cannot be written as TOML")?;
        let search =
            Value::try_from(SearchSettings::default()).context("the search cannot be written as TOML")?;
        if let Value::Table(table) = &mut value {
            table.insert(SEARCH.to_owned(), search);
        }
        if let Some(path) = &self.config {
            read_config(&mut value, path)?;
        }
        for flag in &self.set {
            apply_flag(&mut value, flag)?;
        }
        let (mut settings, search) = parse(&value).map_err(|error| usage(tidy(&error)))?;
        if let Some(seed) = self.seed {
            settings.training.seed = seed;
        }
        settings.validate().and_then(|()| search.validate()).map_err(|error| usage(error.to_string()))?;
        let untouched = ModelSettings::default().network;
        let open = self.search == Search::Auto
            && self.preset == Preset::Feedback
            && settings.variants.is_empty()
            && (&settings.network.prior, &settings.network.head) == (&untouched.prior, &untouched.head);
        Ok(Plan { settings, search: open.then_some(search) })
    }
}

fn read_config(value: &mut Value, path: &Path) -> Result<()> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read settings file {name}"))?;
    let table: Table =
        toml::from_str(&text).map_err(|error| usage(format!("settings file {name}: {error}")))?;
    overlay(value, Value::Table(table));
    parse(value).map_err(|error| {
        // Read on its own, the file may give the same error with its line.
        let alone = toml::from_str::<ModelSettings>(&text).err();
        let error = alone.filter(|alone| alone.message() == error.message()).unwrap_or(error);
        usage(format!("settings file {name}: {}{}", error.to_string().trim_end(), suggestion(&error)))
    })?;
    Ok(())
}

fn apply_flag(value: &mut Value, flag: &str) -> Result<()> {
    let (key, setting) = flag.split_once('=').filter(|(key, _)| !key.trim().is_empty()).ok_or_else(|| {
        usage(format!("--set {flag}: write it as KEY=VALUE, as in --set training.epochs=200"))
    })?;
    // A word that is no TOML value is meant as text: activation=tanh.
    let quoted = Value::String(setting.trim().to_owned());
    let table = toml::from_str::<Table>(&format!("{key} = {setting}"))
        .or_else(|_| toml::from_str::<Table>(&format!("{key} = {quoted}")))
        .map_err(|error| usage(format!("--set {flag}: {}", error.message())))?;
    overlay(value, Value::Table(table));
    parse(value).map_err(|error| usage(format!("--set {flag}: {}", tidy(&error))))?;
    Ok(())
}

/// The model's settings, and beside them what the search tries.
fn parse(value: &Value) -> Result<(ModelSettings, SearchSettings), toml::de::Error> {
    let mut value = value.clone();
    let search = value.as_table_mut().and_then(|table| table.remove(SEARCH));
    let search = search.map_or_else(|| Ok(SearchSettings::default()), SearchSettings::deserialize)?;
    Ok((ModelSettings::deserialize(value)?, search))
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
    use bayespc::learners::Rule;
    use bayespc::prediction::Method;

    fn load(set: &[&str]) -> Result<ModelSettings> {
        let set = set.iter().map(|&flag| flag.to_owned()).collect();
        let args =
            SettingsArgs { preset: Preset::Feedback, config: None, set, seed: None, search: Search::Auto };
        Ok(args.plan_onto(|preset| preset)?.settings)
    }

    #[test]
    fn without_flags_the_settings_are_the_default_with_five_members() {
        assert_eq!(load(&[]).unwrap(), ModelSettings { members: 5, ..ModelSettings::default() });
        let paper = SettingsArgs {
            preset: Preset::Paper,
            config: None,
            set: vec![],
            seed: None,
            search: Search::Auto,
        };
        let plan = paper.plan_onto(|preset| preset).unwrap();
        assert_eq!(plan.settings, ModelSettings::paper());
        assert!(plan.search.is_none());
    }

    #[test]
    fn a_flag_changes_one_entry_and_leaves_its_neighbours() {
        let settings = load(&["network.prior.col_var=1", "network.prior.input_col_var = 0.5"]);
        // An integer where a number is meant is a number.
        let prior = settings.unwrap().network.prior;
        assert_eq!((prior.col_var, prior.input_col_var, prior.scale), (1.0, Some(0.5), 1000.0));
    }

    #[test]
    fn the_search_has_settings_of_its_own_and_is_off_where_prior_or_head_are_set() {
        let plan = |set: &[&str]| {
            let set = set.iter().map(|&flag| flag.to_owned()).collect();
            SettingsArgs { preset: Preset::Feedback, config: None, set, seed: None, search: Search::Auto }
                .plan_onto(|preset| preset)
        };
        let search = plan(&["search.rounds=3", "search.col_vars=[1, 2]"]).unwrap().search.unwrap();
        assert_eq!((search.rounds, search.col_vars), (3, vec![1.0, 2.0]));
        assert!(plan(&["network.prior.col_var=1"]).unwrap().search.is_none());
        let error = plan(&["search.fraction=2"]).unwrap_err().to_string();
        assert!(error.contains("search.fraction = 2"), "{error}");
        let error = plan(&["search.round=2"]).unwrap_err().to_string();
        assert!(error.contains("did you mean `rounds`?"), "{error}");
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
        let error = load(&["network.prior.col_vra=1"]).unwrap_err().to_string();
        assert!(error.contains("col_vra") && error.contains("did you mean `col_var`?"), "{error}");
        let error = load(&["training.epochs"]).unwrap_err().to_string();
        assert!(error.contains("KEY=VALUE"), "{error}");
        let error = load(&["training.epochs=many"]).unwrap_err().to_string();
        assert!(error.contains("training.epochs=many") && error.contains("invalid type"), "{error}");
        let error = load(&["network.prior.col_var=-1"]).unwrap_err().to_string();
        assert!(error.contains("prior.col_var = -1"), "{error}");
    }
}
