//! Many samples of many columns that all share one scale are pictures, whatever they are called: the default then is the
//! network that suits pictures ([`ModelSettings::images`]), one for each fold, instead of a search among small networks.

use super::selection::SearchSettings;
use super::settings::{InputScaling, ModelSettings};
use crate::data::{Inputs, Samples, Task};

/// Samples and columns that pictures have at least.
const SAMPLES: usize = 10_000;
const COLUMNS: usize = 256;

/// Share of the columns that vary which begin at the smallest value of all and reach three quarters of the range of all.
const ALIKE: f64 = 0.5;

/// The settings for these samples: what is said stays, what is left open suits pictures if the samples are some.
pub(super) fn adapted(settings: &ModelSettings, samples: &Samples<'_>) -> ModelSettings {
    let default = ModelSettings::default();
    let open = settings.search == default.search
        && settings.network == default.network
        && settings.rule == default.rule
        && settings.input_scaling == InputScaling::Auto;
    if !(open && samples.task() != Task::Regression && are_pictures(samples.inputs())) {
        return settings.clone();
    }
    let images = ModelSettings::images();
    let mut adapted = ModelSettings {
        search: SearchSettings {
            prior_vars: vec![images.network.prior.var],
            linear_vars: Vec::new(),
            activations: Vec::new(),
            noise: false,
            widths: Vec::new(),
            bins: vec![0],
            kinds: 1,
            ..settings.search.clone()
        },
        network: images.network,
        rule: images.rule,
        input_scaling: images.input_scaling,
        ..settings.clone()
    };
    if settings.training.epochs == default.training.epochs {
        adapted.training.epochs = images.training.epochs;
    }
    if settings.training.batch_size == default.training.batch_size {
        adapted.training.batch_size = images.training.batch_size;
    }
    adapted
}

/// Whether there are many samples of many columns, at least half of which have the same range.
fn are_pictures(inputs: Inputs<'_>) -> bool {
    let (d, n) = (inputs.n_features(), inputs.n_samples());
    if n < SAMPLES || d < COLUMNS {
        return false;
    }
    let mut ranges = vec![(f64::INFINITY, f64::NEG_INFINITY); d];
    for j in 0..n {
        for (i, (low, high)) in ranges.iter_mut().enumerate() {
            let x = inputs.value(i, j);
            (*low, *high) = (low.min(x), high.max(x));
        }
    }
    let all = ranges.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |all, own| {
        (f64::min(all.0, own.0), f64::max(all.1, own.1))
    });
    let varying: Vec<_> = ranges.into_iter().filter(|(low, high)| low < high).collect();
    let alike = varying.iter().filter(|own| own.0 == all.0 && own.1 - all.0 >= 0.75 * (all.1 - all.0));
    alike.count() as f64 >= ALIKE * varying.len() as f64 && varying.len() >= COLUMNS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mat;
    use crate::data::Targets;

    #[test]
    fn columns_of_one_scale_are_pictures_and_measurements_are_not() {
        let pixels =
            Mat::from_fn(300, SAMPLES, |i, j| if i < 20 { 0.0 } else { ((i * 7 + j * 13) % 256) as f64 });
        assert!(are_pictures((&pixels).into()));
        let measured = Mat::from_fn(300, SAMPLES, |i, j| (1 + i) as f64 * ((i * 7 + j * 13) % 256) as f64);
        assert!(!are_pictures((&measured).into()));
        assert!(!are_pictures(pixels.subcols(0, 500).into()));
        assert!(!are_pictures(pixels.subrows(0, 200).into()));
    }

    #[test]
    fn what_is_said_stays() {
        let pixels = Mat::from_fn(300, SAMPLES, |i, j| ((i * 7 + j * 13) % 256) as f64);
        let labels: Vec<usize> = (0..SAMPLES).map(|j| j % 3).collect();
        let samples = Samples::new(&pixels, Targets::classes(&labels)).unwrap();
        let by_default = adapted(&ModelSettings::default(), &samples);
        assert_eq!(by_default.network, ModelSettings::images().network);
        assert_eq!(by_default.input_scaling, InputScaling::Whole);
        let mut own = ModelSettings::default();
        own.network.hidden_layer_sizes = vec![7];
        assert_eq!(adapted(&own, &samples), own);
        let mut longer = ModelSettings::default();
        longer.training.epochs = 3;
        assert_eq!(adapted(&longer, &samples).training.epochs, 3);
        assert_eq!(adapted(&ModelSettings::fast(), &samples), ModelSettings::fast());
    }
}
