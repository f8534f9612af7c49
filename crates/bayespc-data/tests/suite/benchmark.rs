//! The real benchmark data, where they are at hand: in the folder of `BAYESPC_DATA`, or in `shared/data`
//! beside the project. Without them these tests say so and check nothing.

#![allow(clippy::unwrap_used, clippy::format_push_string)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bayespc_data::{
    DataSource, Error, ImageSet, Location, catalogue, load_images, load_uci, locate_uci, parse_splits,
    standard_splits,
};

/// The folder of real data, if there is one; a folder that was named must be one.
fn data_folder() -> Option<PathBuf> {
    let named = std::env::var_os("BAYESPC_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = named.clone().unwrap_or(beside);
    if folder.join("uci").is_dir() {
        return Some(folder);
    }
    assert!(named.is_none(), "BAYESPC_DATA names {}, which has no folder `uci`", folder.display());
    // Not `eprintln!`, whose output a passing test does not show.
    let message = format!("SKIPPED: no benchmark data in {} (set BAYESPC_DATA)\n", folder.display());
    std::io::stderr().write_all(message.as_bytes()).unwrap();
    None
}

/// Looks in `folder` only, with an empty cache.
fn only(folder: &Path, cache: &Path) -> DataSource {
    DataSource {
        folder: Some(folder.to_owned()),
        cache: cache.to_owned(),
        download: false,
        mirror: None,
        stall: Duration::from_secs(5),
    }
}

#[test]
fn regenerated_splits_equal_the_published_ones_of_all_six_data_sets() {
    let Some(folder) = data_folder() else { return };
    for info in catalogue() {
        let published =
            parse_splits(&folder.join("uci").join(info.name).join("splits.csv"), info.rows).unwrap();
        assert_eq!(published.len(), 20);
        for (ours, theirs) in standard_splits(info.rows, 20).iter().zip(&published) {
            assert_eq!(ours.test, theirs.test, "{}", info.name);
            let mut train = ours.train.clone();
            train.sort_unstable();
            assert_eq!(train, theirs.train, "{}", info.name);
        }
    }
}

/// Mean, population standard deviation, least and greatest value of each target, as documented with the data.
const TARGETS: [(&str, [f64; 4]); 6] = [
    ("yacht", [10.4954, 15.1359, 0.01, 62.42]),
    ("concrete", [35.8180, 16.6976, 2.33, 82.6]),
    ("wine", [5.6360, 0.8073, 3.0, 8.0]),
    ("housing", [22.5328, 9.1880, 5.0, 50.0]),
    ("power", [454.3650, 17.0661, 420.26, 495.76]),
    ("energy", [22.3072, 10.0836, 6.01, 43.1]),
];

#[test]
fn every_data_set_loads_with_its_documented_target() {
    let Some(folder) = data_folder() else { return };
    let cache = tempfile::tempdir().unwrap();
    for (name, [mean, std, min, max]) in TARGETS {
        let data =
            load_uci(name, &only(&folder, cache.path()), &mut |_, _| panic!("nothing to download")).unwrap();
        let info = catalogue().iter().find(|info| info.name == name).unwrap();
        assert_eq!((data.features.nrows(), data.features.ncols()), (info.features.len(), info.rows));
        let y: Vec<f64> = data.targets.row(0).iter().copied().collect();
        let n = y.len() as f64;
        let found_mean = y.iter().sum::<f64>() / n;
        let found_std = (y.iter().map(|y| (y - found_mean).powi(2)).sum::<f64>() / n).sqrt();
        assert!((found_mean - mean).abs() <= 5e-5, "{name}: {found_mean}");
        assert!((found_std - std).abs() <= 5e-5, "{name}: {found_std}");
        assert_eq!(y.iter().copied().fold(f64::INFINITY, f64::min), min);
        assert_eq!(y.iter().copied().fold(f64::NEG_INFINITY, f64::max), max);
    }
}

#[test]
fn a_table_may_lie_under_its_plain_name_but_must_be_the_benchmark() {
    let Some(folder) = data_folder() else { return };
    let (own, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = std::fs::read_to_string(folder.join("uci/yacht/data.csv")).unwrap();
    let path = own.path().join("yacht.csv");
    let source = only(own.path(), cache.path());
    assert_eq!(locate_uci("yacht", &source).unwrap(), Location::Nowhere);
    std::fs::write(&path, &text).unwrap();
    assert_eq!(locate_uci("yacht", &source).unwrap(), Location::Folder(path.clone()));
    assert_eq!(load_uci("yacht", &source, &mut |_, _| {}).unwrap().features.ncols(), 308);

    let mut lines: Vec<&str> = text.lines().collect();
    lines.swap(1, 2);
    std::fs::write(&path, lines.join("\n")).unwrap();
    assert!(matches!(
        load_uci("yacht", &source, &mut |_, _| {}),
        Err(Error::NotBenchmark { name: "yacht", .. })
    ));
    std::fs::write(&path, lines[..100].join("\n")).unwrap();
    assert!(matches!(load_uci("yacht", &source, &mut |_, _| {}), Err(Error::Format { .. })));
}

#[test]
fn mnist_loads_with_its_documented_statistics() {
    let Some(folder) = data_folder() else { return };
    let cache = tempfile::tempdir().unwrap();
    let mnist = load_images(ImageSet::Mnist, &only(&folder, cache.path()), &mut |_, _| {}).unwrap();
    assert_eq!((mnist.train_images.nrows(), mnist.train_images.ncols()), (784, 60_000));
    assert_eq!((mnist.test_images.nrows(), mnist.test_images.ncols()), (784, 10_000));
    assert_eq!(counts(&mnist.train_labels), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]);
    assert_eq!(counts(&mnist.test_labels), [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]);
    let pixels = mnist.train_images.col_iter().flat_map(|image| image.iter().map(|&x| f64::from(x)));
    let mean = pixels.sum::<f64>() / (784.0 * 60_000.0);
    assert!((mean - 0.130_660).abs() < 5e-7, "{mean}");
}

#[test]
fn fashion_mnist_is_found_in_its_own_folder_and_has_its_published_mean() {
    let Some(folder) = data_folder() else { return };
    let cache = tempfile::tempdir().unwrap();
    let clothes = load_images(ImageSet::FashionMnist, &only(&folder, cache.path()), &mut |_, _| {}).unwrap();
    assert_eq!((clothes.train_images.ncols(), clothes.test_images.ncols()), (60_000, 10_000));
    assert_eq!(counts(&clothes.train_labels), [6000; 10]);
    assert_eq!(counts(&clothes.test_labels), [1000; 10]);
    let pixels = || clothes.train_images.col_iter().flat_map(|image| image.iter().map(|&x| f64::from(x)));
    let (mean, std) = ImageSet::FashionMnist.pixel_moments();
    let n = 784.0 * 60_000.0;
    assert!((pixels().sum::<f64>() / n - mean).abs() < 1e-6);
    let square = pixels().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    assert!((square.sqrt() - std).abs() < 1e-6);
    // Digits that lie without a folder are not taken for clothes.
    let digits = only(&folder.join("mnist"), cache.path());
    assert!(matches!(
        load_images(ImageSet::FashionMnist, &digits, &mut |_, _| {}),
        Err(Error::NotFound { .. })
    ));
}

/// How often each digit occurs.
fn counts(labels: &[u8]) -> [usize; 10] {
    let mut counts = [0; 10];
    for &label in labels {
        counts[usize::from(label)] += 1;
    }
    counts
}

/// Serves files of a folder over HTTP, and anything else as 404, until the test process ends.
fn serve_folder(files: Vec<(&'static str, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            let request = String::from_utf8(request).unwrap();
            let path = request.split(' ').nth(1).unwrap();
            let found = files.iter().find(|(known, _)| path == *known);
            let (status, bytes) =
                found.map_or(("404 Not Found", &[][..]), |(_, bytes)| ("200 OK", &bytes[..]));
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len());
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(bytes)).unwrap();
        }
    });
    address
}

/// The published `housing.data` has the benchmark's values in columns of fixed width.
fn published_housing(table: &str) -> Vec<u8> {
    let format: [(usize, usize); 14] = [
        (8, 5),
        (7, 2),
        (8, 3),
        (3, 0),
        (8, 4),
        (8, 4),
        (7, 2),
        (8, 4),
        (4, 0),
        (7, 1),
        (7, 2),
        (7, 2),
        (7, 2),
        (7, 2),
    ];
    let mut text = String::new();
    for line in table.lines().skip(1) {
        for (cell, (width, decimals)) in line.split(',').zip(format) {
            text += &format!("{:width$.decimals$}", cell.parse::<f64>().unwrap());
        }
        text += "\n";
    }
    text.into_bytes()
}

#[test]
fn the_published_housing_file_is_downloaded_once_checked_and_converted() {
    let Some(folder) = data_folder() else { return };
    let table = std::fs::read_to_string(folder.join("uci/housing/data.csv")).unwrap();
    let path = "/ml/machine-learning-databases/housing/housing.data";
    let address = serve_folder(vec![(path, published_housing(&table))]);
    let (own, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source =
        DataSource { download: true, mirror: Some(address.clone()), ..only(own.path(), cache.path()) };
    assert_eq!(locate_uci("housing", &source).unwrap(), Location::Download(vec![format!("{address}{path}")]));

    let mut last = None;
    let downloaded = load_uci("housing", &source, &mut |done, total| last = Some((done, total))).unwrap();
    assert!(matches!(last, Some((done, Some(total))) if done == total && done > 0));
    let direct = load_uci("housing", &only(&folder, cache.path()), &mut |_, _| {}).unwrap();
    assert_eq!(downloaded.features, direct.features);
    assert_eq!(downloaded.targets, direct.targets);

    let kept = cache.path().join("uci/housing/housing.data");
    assert_eq!(locate_uci("housing", &source).unwrap(), Location::Cache(kept.clone()));
    let offline = DataSource { download: false, ..source.clone() };
    assert_eq!(
        load_uci("housing", &offline, &mut |_, _| panic!("cached")).unwrap().features,
        direct.features
    );

    std::fs::write(&kept, "1 2 3").unwrap();
    assert!(
        matches!(load_uci("housing", &offline, &mut |_, _| {}), Err(Error::Checksum { path, .. }) if path == kept)
    );
}

#[test]
fn mnist_is_downloaded_with_one_progress_over_all_files() {
    let Some(folder) = data_folder() else { return };
    let read = |name: &str| std::fs::read(folder.join("mnist").join(name)).unwrap();
    let address = serve_folder(vec![
        ("/cvdf-datasets/mnist/train-images-idx3-ubyte.gz", read("train-images-idx3-ubyte.gz")),
        // Only at the second host.
        ("/mnist/train-labels-idx1-ubyte.gz", read("train-labels-idx1-ubyte.gz")),
        ("/cvdf-datasets/mnist/t10k-images-idx3-ubyte.gz", read("t10k-images-idx3-ubyte.gz")),
        ("/cvdf-datasets/mnist/t10k-labels-idx1-ubyte.gz", read("t10k-labels-idx1-ubyte.gz")),
    ]);
    let (own, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = DataSource { download: true, mirror: Some(address), ..only(own.path(), cache.path()) };
    let mut last = 0;
    let mnist = load_images(ImageSet::Mnist, &source, &mut |done, total| {
        assert!(done >= last && total == Some(11_594_722));
        last = done;
    });
    assert_eq!(last, 11_594_722);
    assert_eq!(mnist.unwrap().train_labels[..5], [5, 0, 4, 1, 9]);
    assert_eq!(std::fs::read_dir(cache.path().join("mnist")).unwrap().count(), 4);
}

#[test]
fn offline_without_the_file_the_error_says_where_to_put_it() {
    let (own, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let error = load_uci("concrete", &only(own.path(), cache.path()), &mut |_, _| {}).unwrap_err();
    assert!(matches!(&error, Error::NotFound { file, put, .. }
        if file == "Concrete_Data.xls" && *put == cache.path().join("uci/concrete")));
    assert!(error.to_string().contains("BAYESPC_DATA"), "{error}");
    let error = load_uci("titanic", &only(own.path(), cache.path()), &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, Error::UnknownDataset { name, .. } if name == "titanic"));
}
