//! What the targets share: small models, rounds, scratch files, and files whose checksum is right.

use std::path::{Path, PathBuf};

use bayespc::model::rounds::{PartStatistics, RoundSettings, Rounds};
use bayespc::{Mat, Model, ModelSettings, Samples, Task};
use bayespc_data::{Encoding, EncodingOptions, Kinds, Table, Targets};
use safetensors::SafeTensors;

/// Rents of flats: numbers, a category, a boolean and a date.
pub const FLATS: &str = "size,city,new,built,rent\n\
    31.5,Bern,true,01.02.2020,410\n57,Chur,false,03.12.1999,650.5\n24,Aarau,true,17.08.2011,300\n\
    80,Bern,false,28.02.2004,905\n,Chur,true,09.09.2009,520\n44,Aarau,false,,480\n62,Bern,true,11.05.2016,700\n";

/// Spots of two colours.
pub const SPOTS: &str = "a,b,colour\n0.1,0.9,red\n0.8,-0.2,blue\n0.3,0.4,red\n-0.5,0.2,blue\n0.9,0.9,red\n-0.3,-0.8,blue\n";

/// A model of a table, as `bayespc fit` would write it.
pub fn fitted(csv: &str, target: &str) -> Vec<u8> {
    let table = Table::from_csv("t.csv", csv.as_bytes(), &Kinds::new()).expect("a table");
    let encoding = Encoding::fit(&table, &[target], &EncodingOptions::default()).expect("an encoding");
    let features = encoding.transform(&table).expect("features").features;
    let mut settings = ModelSettings::fast();
    settings.training.epochs = 2;
    settings.network.hidden_layer_sizes = vec![3];
    let mut model = match encoding.targets(&table).expect("targets") {
        Targets::Regression(values) => Model::fit(&Samples::new(&features, &values).expect("samples"), &settings),
        Targets::Classification(labels) => {
            let classes = encoding.classes().expect("classes").len();
            let targets = bayespc::Targets::Classes { labels: &labels, classes };
            Model::fit(&Samples::new(&features, targets).expect("samples"), &settings)
        }
    }
    .expect("a model");
    let text = serde_json::to_string(&encoding).expect("JSON");
    model.notes_mut().insert("encoding".to_owned(), text);
    model.to_bytes().expect("bytes")
}

/// A file with these bytes, in memory if there is such a folder; every process has its own.
pub fn scratch(bytes: &[u8], extension: &str) -> PathBuf {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    let path = folder.join(format!("bayespc-fuzz-{}.{extension}", std::process::id()));
    std::fs::write(&path, bytes).expect("a scratch file can be written");
    path
}

/// Rows of a table that is learned in rounds.
const ROWS: usize = 1100;

/// A model before each of its passes.
pub fn rounds() -> Vec<Rounds> {
    let mut settings = ModelSettings { bins: 2, ..ModelSettings::fast() };
    settings.network.hidden_layer_sizes = vec![2];
    let learning = RoundSettings { rounds: 1, held_out: 0.1, ..RoundSettings::default() };
    let begun = Rounds::begin(&settings, &learning, Task::Regression).expect("rounds");
    let mut all = vec![begun.expecting(ROWS as u64).expect("rows")];
    while let Some(rounds) = all.last().filter(|rounds| rounds.next_pass().is_some()) {
        let next = rounds.absorb(statistics(rounds)).expect("a pass");
        all.push(next);
    }
    all.pop();
    all
}

/// Statistics of two parts for the pass that is due: a whole chunk, and rows of the other one. Few rows have a weight, so that
/// files are small.
pub fn statistics(rounds: &Rounds) -> Vec<PartStatistics> {
    let x = Mat::from_fn(2, ROWS, |i, j| ((3 * i + 2) as f64 * j as f64).sin());
    let y = Mat::from_fn(1, ROWS, |_, j| x[(0, j)] * x[(1, j)]);
    let weights: Vec<f64> = (0..ROWS).map(|j| f64::from(u8::from(j % 50 == 0))).collect();
    let part = |first: usize, n: usize| {
        let samples = Samples::new(x.subcols(first, n), y.subcols(first, n)).expect("samples");
        let samples = samples.weighted(&weights[first..first + n]).expect("weights");
        rounds.statistics(Some(&samples), first as u64).expect("statistics")
    };
    vec![part(0, 1050), part(1050, ROWS - 1050)]
}

/// The same file with the checksum its content has: flipped bits are found out by it, and nothing behind it is tried.
pub fn with_right_checksum(bytes: &[u8]) -> Option<Vec<u8>> {
    let (header, metadata) = SafeTensors::read_metadata(bytes).ok()?;
    let file = SafeTensors::deserialize(bytes).ok()?;
    let text = metadata.metadata().as_ref()?.values().next()?.clone();
    let mut tensors: Vec<_> = file.tensors();
    tensors.retain(|(name, _)| name != "crc32");
    tensors.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut crc = crc32fast::Hasher::new();
    crc.update(text.as_bytes());
    tensors.iter().for_each(|(_, view)| crc.update(view.data()));
    let (start, end) = metadata.info("crc32")?.data_offsets;
    let mut fixed = bytes.to_vec();
    let place = fixed.get_mut(8 + header + start..8 + header + end)?;
    if place.len() != 4 {
        return None;
    }
    place.copy_from_slice(&crc.finalize().to_le_bytes());
    Some(fixed)
}
