//! MNIST, 70 000 handwritten digits of 28 × 28 pixels, and Fashion-MNIST, as many pieces of clothing in the same format.
//!
//! An idx file is big-endian: a magic number (0x803 images, 0x801 labels), the count, for images
//! also the two sides, then one byte per pixel, row by row, or per label.

use std::path::{Path, PathBuf};

use faer::Mat;

use crate::error::FormatError;
use crate::fetch::{Progress, Remote, gunzip, has_extension, sha256};
use crate::source::{DataSource, Location};
use crate::{Error, Result};

/// Images with their classes, one column per image.
#[derive(Clone, Debug)]
pub struct LabelledImages {
    /// Pixels from 0 (background) to 1, `784 × 60000`.
    pub train_images: Mat<f32>,
    /// Classes, one per training image.
    pub train_labels: Vec<u8>,
    /// Pixels from 0 (background) to 1, `784 × 10000`.
    pub test_images: Mat<f32>,
    /// Classes, one per test image.
    pub test_labels: Vec<u8>,
}

/// Which images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageSet {
    /// Handwritten digits.
    Mnist,
    /// Pieces of clothing.
    FashionMnist,
}

struct File {
    /// Name without `.gz`.
    name: &'static str,
    /// Length of the `.gz`.
    packed_len: u64,
    /// SHA-256 of the content.
    sha256: &'static str,
}

impl ImageSet {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Mnist, Self::FashionMnist];

    /// Its name, which is also that of its folder.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mnist => "mnist",
            Self::FashionMnist => "fashion-mnist",
        }
    }

    /// The set of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// Whom to cite, and the licence.
    pub fn citation(self) -> &'static str {
        match self {
            Self::Mnist => {
                "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, Proc. IEEE 86(11), 1998 (commonly distributed under CC BY-SA 3.0)"
            }
            Self::FashionMnist => {
                "H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms, arXiv:1708.07747, 2017 (MIT licence)"
            }
        }
    }

    /// What classes 0 to 9 are.
    pub fn classes(self) -> [&'static str; 10] {
        match self {
            Self::Mnist => ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
            Self::FashionMnist => [
                "T-shirt/top",
                "Trouser",
                "Pullover",
                "Dress",
                "Coat",
                "Sandal",
                "Shirt",
                "Sneaker",
                "Bag",
                "Ankle boot",
            ],
        }
    }

    /// Mean and standard deviation of all pixels of the training images.
    pub fn pixel_moments(self) -> (f64, f64) {
        match self {
            Self::Mnist => (0.130_660, 0.308_108),
            Self::FashionMnist => (0.286_041, 0.353_024),
        }
    }

    fn files(self) -> &'static [File; 4] {
        match self {
            Self::Mnist => &DIGITS,
            Self::FashionMnist => &CLOTHES,
        }
    }

    /// Folders on the network that hold the files.
    fn hosts(self) -> [&'static str; 2] {
        match self {
            Self::Mnist => [
                "https://storage.googleapis.com/cvdf-datasets/mnist",
                "https://ossci-datasets.s3.amazonaws.com/mnist",
            ],
            Self::FashionMnist => [
                "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
                "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
            ],
        }
    }
}

const DIGITS: [File; 4] = [
    File {
        name: "train-images-idx3-ubyte",
        packed_len: 9_912_422,
        sha256: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    },
    File {
        name: "train-labels-idx1-ubyte",
        packed_len: 28_881,
        sha256: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    },
    File {
        name: "t10k-images-idx3-ubyte",
        packed_len: 1_648_877,
        sha256: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    },
    File {
        name: "t10k-labels-idx1-ubyte",
        packed_len: 4_542,
        sha256: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
];

const CLOTHES: [File; 4] = [
    File {
        name: "train-images-idx3-ubyte",
        packed_len: 26_421_880,
        sha256: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    },
    File {
        name: "train-labels-idx1-ubyte",
        packed_len: 29_515,
        sha256: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    },
    File {
        name: "t10k-images-idx3-ubyte",
        packed_len: 4_422_102,
        sha256: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    },
    File {
        name: "t10k-labels-idx1-ubyte",
        packed_len: 5_148,
        sha256: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
];

const SIDE: usize = 28;

/// Loads images from wherever `source` finds their four files first.
///
/// `progress` counts the bytes of all four and is called only while something is downloaded.
pub fn load_images(set: ImageSet, source: &DataSource, progress: Progress<'_>) -> Result<LabelledImages> {
    let total = set.files().iter().map(|file| file.packed_len).sum();
    let mut before = 0;
    let mut contents = Vec::new();
    for file in set.files() {
        contents.push(load_file(set, file, source, &mut |done, _| {
            progress(before + done, Some(total));
        })?);
        before += file.packed_len;
    }
    let [
        (train_path, train),
        (train_labels_path, train_labels),
        (test_path, test),
        (test_labels_path, test_labels),
    ] = &contents[..]
    else {
        unreachable!("there are four files");
    };
    Ok(LabelledImages {
        train_images: images(train).map_err(format_error(train_path))?,
        train_labels: labels(train_labels).map_err(format_error(train_labels_path))?,
        test_images: images(test).map_err(format_error(test_path))?,
        test_labels: labels(test_labels).map_err(format_error(test_labels_path))?,
    })
}

/// Where [`load_images`] would take its four files from.
pub fn locate_images(set: ImageSet, source: &DataSource) -> Vec<Location> {
    let place = |file: &File| {
        let urls = urls(set, file);
        source.locate(&candidates(set, file), &[&urls[0], &urls[1]])
    };
    set.files().iter().map(place).collect()
}

fn urls(set: ImageSet, file: &File) -> [String; 2] {
    set.hosts().map(|host| format!("{host}/{}.gz", file.name))
}

/// Names under which a file may lie in a folder. Without a folder of its own a file is a digit's.
fn candidates(set: ImageSet, file: &File) -> Vec<String> {
    let names = [format!("{}.gz", file.name), file.name.to_owned()];
    let alone = if set == ImageSet::Mnist { &names[..] } else { &[] };
    let own = names.iter().map(|name| format!("{}/{name}", set.name()));
    own.chain(alone.iter().cloned()).collect()
}

fn load_file(
    set: ImageSet,
    file: &File,
    source: &DataSource,
    progress: Progress<'_>,
) -> Result<(PathBuf, Vec<u8>)> {
    let packed = format!("{}.gz", file.name);
    let urls = urls(set, file);
    let remote = Remote { file: &packed, sha256: file.sha256, urls: source.addresses(&[&urls[0], &urls[1]]) };
    let path = source.obtain(&candidates(set, file), &remote, set.name(), progress)?;
    let mut bytes = std::fs::read(&path).map_err(Error::io(&path))?;
    if has_extension(&path.to_string_lossy(), "gz") {
        bytes = gunzip(&bytes).map_err(FormatError::Gzip).map_err(format_error(&path))?;
    }
    let found = sha256(&bytes);
    if found != file.sha256 {
        return Err(Error::Checksum { path, found, expected: file.sha256.to_owned() });
    }
    Ok((path, bytes))
}

/// Pixels scaled to 0..1, one image per column.
fn images(bytes: &[u8]) -> Result<Mat<f32>, FormatError> {
    let ([n, height, width], pixels) = header(bytes, 0x803)?;
    check("rows", height, SIDE)?;
    check("columns", width, SIDE)?;
    let d = SIDE * SIDE;
    check("pixels", pixels.len(), n * d)?;
    Ok(Mat::from_fn(d, n, |i, j| f32::from(pixels[j * d + i]) / 255.0))
}

fn labels(bytes: &[u8]) -> Result<Vec<u8>, FormatError> {
    let ([n], labels) = header(bytes, 0x801)?;
    check("labels", labels.len(), n)?;
    Ok(labels.to_vec())
}

/// Checks the magic number and reads the lengths that follow it.
fn header<const N: usize>(bytes: &[u8], magic: u32) -> Result<([usize; N], &[u8]), FormatError> {
    let word = |i: usize| {
        let end = 4 * (i + 1);
        let word = bytes.get(4 * i..end).and_then(|word| word.try_into().ok()).map(u32::from_be_bytes);
        word.ok_or(FormatError::Shape { axis: "bytes", found: bytes.len(), expected: end })
    };
    let found = word(0)?;
    if found != magic {
        return Err(FormatError::Magic { found, expected: magic });
    }
    let mut lengths = [0; N];
    for (i, length) in lengths.iter_mut().enumerate() {
        *length = word(i + 1)? as usize;
    }
    Ok((lengths, &bytes[4 * (N + 1)..]))
}

fn check(axis: &'static str, found: usize, expected: usize) -> Result<(), FormatError> {
    if found == expected { Ok(()) } else { Err(FormatError::Shape { axis, found, expected }) }
}

fn format_error(path: &Path) -> impl FnOnce(FormatError) -> Error + '_ {
    move |problem| Error::Format { file: path.display().to_string(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idx(magic: u32, lengths: &[u32], content: &[u8]) -> Vec<u8> {
        let words = std::iter::once(&magic).chain(lengths);
        words.flat_map(|word| word.to_be_bytes()).chain(content.iter().copied()).collect()
    }

    #[test]
    fn pixels_are_scaled_and_images_are_columns() {
        let mut pixels = vec![0; 2 * 784];
        pixels[1] = 255;
        pixels[784 + 28] = 51;
        let images = images(&idx(0x803, &[2, 28, 28], &pixels)).unwrap();
        assert_eq!((images.nrows(), images.ncols()), (784, 2));
        assert_eq!((images[(1, 0)], images[(28, 1)], images[(0, 0)]), (1.0, 0.2, 0.0));
    }

    #[test]
    fn labels_are_bytes() {
        assert_eq!(labels(&idx(0x801, &[3], &[5, 0, 4])).unwrap(), [5, 0, 4]);
    }

    #[test]
    fn a_wrong_idx_file_is_an_error() {
        assert!(matches!(
            labels(&idx(0x803, &[1], &[5])),
            Err(FormatError::Magic { found: 0x803, expected: 0x801 })
        ));
        assert!(matches!(labels(&idx(0x801, &[2], &[5])), Err(FormatError::Shape { axis: "labels", .. })));
        assert!(matches!(labels(&[0, 0]), Err(FormatError::Shape { axis: "bytes", .. })));
        assert!(matches!(
            images(&idx(0x803, &[1, 28, 27], &[])),
            Err(FormatError::Shape { axis: "columns", .. })
        ));
        assert!(matches!(
            images(&idx(0x803, &[1, 28, 28], &[0])),
            Err(FormatError::Shape { axis: "pixels", .. })
        ));
    }
}
