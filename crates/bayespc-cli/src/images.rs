//! MNIST and Fashion-MNIST as tables to learn from: one column per pixel, the class as `label`, and their own test images.
//!
//! As a table in full the images would take gigabytes. The encoding needs only the names and kinds of columns,
//! which ten rows tell; features come from the images themselves.

use anyhow::{Context, Result};
use bayespc::learners::Rule;
use bayespc::model::ModelSettings;
use bayespc::network::NetworkSettings;
use bayespc_data::{DataSource, ImageSet, Kinds, LabelledImages, Split, Table, Targets, load_images};
use faer::Mat;

use crate::input::Part;
use crate::progress::downloading;

/// Their target column.
pub const TARGET: &str = "label";
/// Number of classes.
const CLASSES: u8 = 10;

/// The images, training before test.
pub struct Images {
    set: ImageSet,
    images: LabelledImages,
}

impl Images {
    /// Load them from wherever they are.
    pub fn load(set: ImageSet, source: &DataSource) -> Result<Self> {
        let images = downloading(set.name(), |report| load_images(set, source, report))?;
        Ok(Self { set, images })
    }

    /// Number of images.
    pub fn len(&self) -> usize {
        self.images.train_labels.len() + self.images.test_labels.len()
    }

    /// The split everybody uses; without a test part all images are learned from.
    pub fn split(&self, with_test: bool) -> Split {
        let n_train = if with_test { self.images.train_labels.len() } else { self.len() };
        Split { train: (0..n_train).collect(), test: (n_train..self.len()).collect() }
    }

    /// One image of every class, as a table.
    pub fn sample(&self) -> Result<Table> {
        let d = self.images.train_images.nrows();
        let names = (0..d).map(|i| format!("pixel_{i}")).chain([TARGET.to_owned()]);
        let mut lines = vec![names.collect::<Vec<_>>().join(",")];
        for class in 0..CLASSES {
            let j = self.images.train_labels.iter().position(|&label| label == class);
            let j = j.with_context(|| format!("no training image is of class {class}"))?;
            let pixels = self.images.train_images.col(j).iter().map(|x| format!("{x:?}"));
            lines.push(pixels.chain([class.to_string()]).collect::<Vec<_>>().join(","));
        }
        Ok(Table::from_csv(self.set.name(), lines.join("\n").as_bytes(), &Kinds::new())?)
    }

    /// Some of the images.
    pub fn part(&self, rows: &[usize]) -> Part {
        let n_train = self.images.train_labels.len();
        let features = Mat::from_fn(self.images.train_images.nrows(), rows.len(), |i, j| {
            f64::from(match rows[j].checked_sub(n_train) {
                None => self.images.train_images[(i, rows[j])],
                Some(test) => self.images.test_images[(i, test)],
            })
        });
        let labels = rows.iter().map(|&row| match row.checked_sub(n_train) {
            None => usize::from(self.images.train_labels[row]),
            Some(test) => usize::from(self.images.test_labels[test]),
        });
        Part { features, targets: Targets::Classification(labels.collect()) }
    }
}

/// What images ask for instead of the settings for small tables. The paper's rule keeps its own, on a network of
/// the same shape.
pub fn defaults(settings: ModelSettings) -> ModelSettings {
    let images = ModelSettings::images();
    if matches!(settings.rule, Rule::Feedback(_)) {
        return images;
    }
    let hidden_layer_sizes = images.network.hidden_layer_sizes;
    ModelSettings {
        network: NetworkSettings { hidden_layer_sizes, ..settings.network },
        training: images.training,
        precision: images.precision,
        input_scaling: images.input_scaling,
        ..settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve training and three test images of two pixels that tell their number.
    fn images() -> Images {
        let pixels = |first: usize, n| Mat::from_fn(2, n, |i, j| (10 * (first + j) + i) as f32 / 256.0);
        Images {
            set: ImageSet::Mnist,
            images: LabelledImages {
                train_images: pixels(0, 12),
                train_labels: (0..12).map(|j| j % CLASSES).collect(),
                test_images: pixels(12, 3),
                test_labels: vec![7, 8, 9],
            },
        }
    }

    #[test]
    fn test_images_follow_the_training_images() {
        let images = images();
        let split = images.split(true);
        assert_eq!((split.train.len(), split.test), (12, vec![12, 13, 14]));
        assert_eq!((images.split(false).train.len(), images.split(false).test.len()), (15, 0));
        let part = images.part(&[11, 13]);
        assert_eq!(part.features, Mat::from_fn(2, 2, |i, j| ([110, 130][j] + i) as f64 / 256.0));
        assert_eq!(part.targets, Targets::Classification(vec![1, 8]));
    }

    #[test]
    fn the_paper_s_rule_keeps_its_own_settings() {
        let images = ModelSettings::images();
        assert_eq!(defaults(ModelSettings::default()), images);
        let mut paper = defaults(ModelSettings::paper());
        assert_eq!(paper.network.hidden_layer_sizes, images.network.hidden_layer_sizes);
        assert_eq!((&paper.training, paper.precision), (&images.training, images.precision));
        paper.network = ModelSettings::paper().network;
        paper.training = ModelSettings::paper().training;
        paper.precision = ModelSettings::paper().precision;
        paper.input_scaling = ModelSettings::paper().input_scaling;
        assert_eq!(paper, ModelSettings::paper());
    }

    #[test]
    fn the_sample_has_every_digit_once() {
        let table = images().sample().unwrap();
        assert_eq!((table.n_rows(), table.columns().len()), (10, 3));
        let bayespc_data::Values::Number(digits) = &table.column(TARGET).unwrap().values else { panic!() };
        assert_eq!(*digits, (0..10).map(f64::from).collect::<Vec<_>>());
        let mut lacking = images();
        lacking.images.train_labels[5] = 4;
        assert!(lacking.sample().unwrap_err().to_string().contains("class 5"));
    }
}
