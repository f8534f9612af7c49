//! A task: standardised training and test data of one split, ready for any learner.

use bayespc::Real;
use bayespc::base::linalg::cast;
use bayespc::data::Standardiser;
use bayespc::data::one_hot;
use bayespc_data::{DataSource, ImageSet, LabelledImages, Split, load_images, load_uci, synthetic};
use faer::{Mat, MatRef};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::error::{Error, Result};
use crate::splitting::Splitting;

/// Points in each part of a synthetic task.
const SYNTHETIC: usize = 1000;

/// Noise of the two moons.
const MOON_NOISE: f64 = 0.1;

/// Data of which splits are made.
pub enum Source {
    /// A regression table, `d × n` and `1 × n`, and how it is split.
    Table(Mat<f64>, Mat<f64>, Splitting),
    /// Two moons, made anew for every seed.
    Moons,
    /// Images with their own test set.
    Images(ImageSet, Box<LabelledImages>),
}

/// Standardised data of one split.
pub struct Task<T: Real> {
    /// Training inputs and targets.
    pub train: (Mat<T>, Mat<T>),
    /// Test inputs and targets.
    pub test: (Mat<T>, Mat<T>),
    /// Test classes, if the task is to classify.
    pub labels: Option<Vec<usize>>,
    /// Mean of the targets: where standardised ones are 0.
    pub target_offset: f64,
    /// Standard deviation of the targets: 1 standardised unit in original units.
    pub target_scale: f64,
}

impl Source {
    /// Load a data set by name; `splitting` is for tables.
    pub fn load(name: &str, splitting: Splitting, source: &DataSource) -> Result<Self> {
        let mut silent = |_, _| {};
        if let Some(set) = ImageSet::named(name) {
            return Ok(Self::Images(set, Box::new(load_images(set, source, &mut silent)?)));
        }
        if name == "two_moons" {
            return Ok(Self::Moons);
        }
        let data = load_uci(name, source, &mut silent)?;
        Ok(Self::Table(data.features, data.targets, splitting))
    }

    /// Split number `split`; synthetic tasks are drawn with `seed`. `most_rows` limits the parts for training and testing.
    /// With `validate` the test part stays unseen: of a table the first fifth of the training part, whose order is
    /// random in standard splits, is predicted from the rest; of images the last sixth of those for training.
    pub fn task<T: Real>(
        &self,
        split: usize,
        seed: u64,
        most_rows: [Option<usize>; 2],
        validate: bool,
    ) -> Result<Task<T>> {
        let [most_train, most_test] = most_rows.map(|most| most.unwrap_or(usize::MAX));
        match self {
            Self::Table(features, targets, splitting) => {
                let Split { mut train, mut test } = splitting.split(features, split)?;
                train.truncate(most_train);
                test.truncate(most_test);
                if validate {
                    let (validation, rest) = train.split_at(train.len() / 5);
                    return regression(features, targets, rest, validation);
                }
                regression(features, targets, &train, &test)
            }
            Self::Moons => {
                let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
                let train = synthetic::two_moons(SYNTHETIC.min(most_train), MOON_NOISE, &mut rng)?;
                let test = synthetic::two_moons(SYNTHETIC.min(most_test), MOON_NOISE, &mut rng)?;
                let scaling = Standardiser::fit(train.features.as_ref()).map_err(learning("two_moons"))?;
                let scaled = |x: &Mat<f64>| scaling.apply(x.as_ref()).map_err(learning("two_moons"));
                let codes = |labels: &[usize]| one_hot(labels, 2).map_err(learning("two_moons"));
                Ok(Task {
                    train: (cast(scaled(&train.features)?.as_ref()), codes(&train.labels)?),
                    test: (cast(scaled(&test.features)?.as_ref()), codes(&test.labels)?),
                    labels: Some(test.labels),
                    target_offset: 0.0,
                    target_scale: 1.0,
                })
            }
            Self::Images(set, images) => {
                let count = most_train.min(images.train_labels.len());
                let labels = |labels: &[u8]| labels.iter().map(|&l| usize::from(l)).collect::<Vec<_>>();
                let (count, test_images, test) = if validate {
                    let held_out = count / 6;
                    let (rest, labelled) = images.train_labels[..count].split_at(count - held_out);
                    (rest.len(), images.train_images.subcols(rest.len(), held_out), labels(labelled))
                } else {
                    let n = most_test.min(images.test_labels.len());
                    (count, images.test_images.subcols(0, n), labels(&images.test_labels[..n]))
                };
                let train = labels(&images.train_labels[..count]);
                let codes = |labels: &[usize]| one_hot(labels, 10).map_err(learning(set.name()));
                Ok(Task {
                    train: (normalised(*set, images.train_images.subcols(0, count)), codes(&train)?),
                    test: (normalised(*set, test_images), codes(&test)?),
                    labels: Some(test),
                    target_offset: 0.0,
                    target_scale: 1.0,
                })
            }
        }
    }
}

impl Source {
    /// Test images of another kind in the units of these; none if one of the two is no set of images.
    pub fn as_seen_here<T: Real>(&self, others: &Self) -> Option<Mat<T>> {
        match (self, others) {
            (Self::Images(own, _), Self::Images(_, images)) => {
                Some(normalised(*own, images.test_images.as_ref()))
            }
            _ => None,
        }
    }
}

/// Pixels with mean 0 and variance 1 over the whole training set of `set`.
fn normalised<T: Real>(set: ImageSet, images: MatRef<'_, f32>) -> Mat<T> {
    let (mean, std) = set.pixel_moments();
    Mat::from_fn(images.nrows(), images.ncols(), |i, j| T::lit((f64::from(images[(i, j)]) - mean) / std))
}

fn regression<T: Real>(
    features: &Mat<f64>,
    targets: &Mat<f64>,
    train: &[usize],
    test: &[usize],
) -> Result<Task<T>> {
    let pick =
        |from: &Mat<f64>, rows: &[usize]| Mat::from_fn(from.nrows(), rows.len(), |i, j| from[(i, rows[j])]);
    let input_scaling = Standardiser::fit(pick(features, train).as_ref()).map_err(learning("scaling"))?;
    let target_scaling = Standardiser::fit(pick(targets, train).as_ref()).map_err(learning("scaling"))?;
    let part = |rows: &[usize]| -> bayespc::Result<(Mat<T>, Mat<T>)> {
        let x = input_scaling.apply(pick(features, rows).as_ref())?;
        let y = target_scaling.apply(pick(targets, rows).as_ref())?;
        Ok((cast(x.as_ref()), cast(y.as_ref())))
    };
    Ok(Task {
        train: part(train).map_err(learning("scaling"))?,
        test: part(test).map_err(learning("scaling"))?,
        labels: None,
        target_offset: target_scaling.offset[0],
        target_scale: target_scaling.scale[0],
    })
}

/// Name the run an error of the core library belongs to.
pub(crate) fn learning(run: &str) -> impl FnOnce(bayespc::Error) -> Error + '_ {
    move |source| Error::Learning { run: run.to_owned(), source }
}
