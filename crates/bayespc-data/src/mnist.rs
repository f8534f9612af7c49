//! MNIST: 70 000 handwritten digits of 28 × 28 pixels.
//!
//! An idx file is big-endian: a magic number (0x803 images, 0x801 labels), the count, for images
//! also the two sides, then one byte per pixel, row by row, or per label.

use std::path::{Path, PathBuf};

use faer::Mat;

use crate::error::FormatError;
use crate::fetch::{Progress, Remote, gunzip, has_extension, sha256};
use crate::source::{DataSource, Location};
use crate::{Error, Result};

/// The digits, one column per image.
#[derive(Clone, Debug)]
pub struct Mnist {
    /// Pixels from 0 (background) to 1 (ink), `784 × 60000`.
    pub train_images: Mat<f32>,
    /// Digits, one per training image.
    pub train_labels: Vec<u8>,
    /// Pixels from 0 (background) to 1 (ink), `784 × 10000`.
    pub test_images: Mat<f32>,
    /// Digits, one per test image.
    pub test_labels: Vec<u8>,
}

/// Whom to cite for MNIST, and its licence.
pub const MNIST_CITATION: &str = "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, Proc. IEEE 86(11), 1998 (commonly distributed under CC BY-SA 3.0)";

struct File {
    /// Name without `.gz`.
    name: &'static str,
    /// Length of the `.gz`.
    packed_len: u64,
    /// SHA-256 of the content.
    sha256: &'static str,
    urls: [&'static str; 2],
}

const FILES: [File; 4] = [
    File {
        name: "train-images-idx3-ubyte",
        packed_len: 9_912_422,
        sha256: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        urls: [
            "https://storage.googleapis.com/cvdf-datasets/mnist/train-images-idx3-ubyte.gz",
            "https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz",
        ],
    },
    File {
        name: "train-labels-idx1-ubyte",
        packed_len: 28_881,
        sha256: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        urls: [
            "https://storage.googleapis.com/cvdf-datasets/mnist/train-labels-idx1-ubyte.gz",
            "https://ossci-datasets.s3.amazonaws.com/mnist/train-labels-idx1-ubyte.gz",
        ],
    },
    File {
        name: "t10k-images-idx3-ubyte",
        packed_len: 1_648_877,
        sha256: "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        urls: [
            "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-images-idx3-ubyte.gz",
            "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-images-idx3-ubyte.gz",
        ],
    },
    File {
        name: "t10k-labels-idx1-ubyte",
        packed_len: 4_542,
        sha256: "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        urls: [
            "https://storage.googleapis.com/cvdf-datasets/mnist/t10k-labels-idx1-ubyte.gz",
            "https://ossci-datasets.s3.amazonaws.com/mnist/t10k-labels-idx1-ubyte.gz",
        ],
    },
];

const SIDE: usize = 28;

/// Loads MNIST from wherever `source` finds its four files first.
///
/// `progress` counts the bytes of all four and is called only while something is downloaded.
pub fn load_mnist(source: &DataSource, progress: Progress<'_>) -> Result<Mnist> {
    let total = FILES.iter().map(|file| file.packed_len).sum();
    let mut before = 0;
    let mut contents = Vec::new();
    for file in &FILES {
        contents.push(load_file(file, source, &mut |done, _| {
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
    Ok(Mnist {
        train_images: images(train).map_err(format_error(train_path))?,
        train_labels: labels(train_labels).map_err(format_error(train_labels_path))?,
        test_images: images(test).map_err(format_error(test_path))?,
        test_labels: labels(test_labels).map_err(format_error(test_labels_path))?,
    })
}

/// Where [`load_mnist`] would take its four files from.
pub fn locate_mnist(source: &DataSource) -> Vec<Location> {
    FILES.iter().map(|file| source.locate(&candidates(file), &file.urls)).collect()
}

/// Names under which a file may lie in a folder.
fn candidates(file: &File) -> [String; 4] {
    let (name, packed) = (file.name, format!("{}.gz", file.name));
    [format!("mnist/{packed}"), packed, format!("mnist/{name}"), name.to_owned()]
}

fn load_file(file: &File, source: &DataSource, progress: Progress<'_>) -> Result<(PathBuf, Vec<u8>)> {
    let packed = format!("{}.gz", file.name);
    let remote = Remote { file: &packed, sha256: file.sha256, urls: source.addresses(&file.urls) };
    let path = source.obtain(&candidates(file), &remote, "mnist", progress)?;
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
