//! Inputs to begin with, one folder for each target, in the folder BAYESPC_SEEDS. Counters need libFuzzer, so this is a target
//! too: it writes when it begins, and tries nothing.

#![no_main]

use std::fs;
use std::io::Write;
use std::path::Path;

use bayespc::distributions::SufficientStats;
use bayespc::model::{LatentModel, LatentSettings};
use bayespc::{Mat, Model, ModelSettings};
use bayespc_data::{Kinds, ParquetWriter, Table};
use bayespc_fuzz::{FLATS, SPOTS, fitted, rounds, statistics};
use flate2::Compression;
use flate2::write::GzEncoder;
use libfuzzer_sys::fuzz_target;

type Failure = Box<dyn std::error::Error>;

fuzz_target!(init: write().expect("seeds can be written"), |_bytes: &[u8]| {});

fn write() -> Result<(), Failure> {
    let folder = std::env::var_os("BAYESPC_SEEDS").ok_or("which folder?")?;
    let put = |target: &str, name: &str, bytes: &[u8]| -> Result<(), Failure> {
        let folder = Path::new(&folder).join(target);
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join(name), bytes)?)
    };
    for (name, csv) in [("rent", FLATS), ("colour", SPOTS)] {
        let bytes = fitted(csv, name);
        put("model_file", name, &bytes)?;
        put("encoding_notes", name, Model::from_bytes(&bytes)?.notes()["encoding"].as_bytes())?;
        put("csv", name, csv.as_bytes())?;
        put("csv", &format!("{name}-semicolons"), csv.replace(',', ";").replace('.', ",").as_bytes())?;
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        packed.write_all(csv.as_bytes())?;
        put("archive", name, &packed.finish()?)?;
        let table = Table::from_csv("t.csv", csv.as_bytes(), &Kinds::new())?;
        let mut parquet = Vec::new();
        let mut writer = ParquetWriter::new(Path::new("t.parquet"), &mut parquet, table.columns())?;
        writer.write(table.columns().to_vec())?;
        writer.finish()?;
        put("parquet", name, &parquet)?;
    }
    for (i, rounds) in rounds().iter().enumerate() {
        put("statistics_file", &format!("state-{i}"), &rounds.to_bytes()?)?;
        put("statistics_file", &format!("part-{i}"), &statistics(rounds)[0].to_bytes()?)?;
    }
    let row = |width: usize| Mat::from_fn(width, 3, |i, j| (i + 2 * j) as f64);
    let sums = SufficientStats::of(row(3).as_ref(), row(2).as_ref())?;
    put("statistics_file", "sums", &sums.to_bytes()?)?;
    let table = Mat::from_fn(4, 40, |i, j| if (i + j) % 9 == 0 { f64::NAN } else { ((i + 1) as f64 * j as f64).sin() });
    put("latent_file", "four", &LatentModel::fit(table.as_ref(), &LatentSettings::default(), &mut ())?.to_bytes()?)?;
    for (name, settings) in
        [("default", ModelSettings::default()), ("fast", ModelSettings::fast()), ("paper", ModelSettings::paper())]
    {
        put("settings_toml", name, toml::to_string(&settings)?.as_bytes())?;
        put("settings_json", name, serde_json::to_string(&settings)?.as_bytes())?;
    }
    put("splits", "two", b"0,1,2,3\n4,5,49\n")?;
    let requests: [(&str, u8, u8, &str); 8] = [
        ("infer", 0, 0, r#"{"inputs":[{"name":"size","shape":[1],"datatype":"FP64","data":[40]},{"name":"city","shape":[1],"datatype":"BYTES","data":["Bern"]},{"name":"new","shape":[1],"datatype":"BOOL","data":[true]},{"name":"built","shape":[1],"datatype":"BYTES","data":["01.02.2020"]}],"outputs":[{"name":"mean"}]}"#),
        ("infer-colour", 1, 0, r#"{"inputs":[{"name":"a","shape":[2],"datatype":"FP64","data":[0.1,0.2]},{"name":"b","shape":[2],"datatype":"FP64","data":[0.5,-1]}],"parameters":{"level":0.5,"quantiles":[0.1,0.9]}}"#),
        ("split", 2, 0, r#"{"dataframe_split":{"columns":["size","city","new","built"],"data":[[40,"Bern",true,"01.02.2020"]]}}"#),
        ("records", 2, 0, r#"{"dataframe_records":[{"size":40,"city":"Bern","new":true,"built":null}]}"#),
        ("row", 3, 0, r#"{"row":{"size":40,"city":"Bern","new":true,"built":"01.02.2020"},"level":0.9}"#),
        ("colour-row", 4, 0, r#"{"row":{"a":0.1,"b":0.2},"of":1}"#),
        ("table", 7, 1, FLATS),
        ("table-colour", 8, 1, SPOTS),
    ];
    for (name, path, kind, body) in requests {
        put("server", name, &[&[path, kind], body.as_bytes()].concat())?;
    }
    Ok(())
}
