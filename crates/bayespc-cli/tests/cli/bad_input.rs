//! Whatever is wrong is named, with the right exit code, and leaves no file behind.

use crate::support::{QUICK, Sandbox, flats};

#[test]
fn bad_tables_are_refused_by_row_and_column() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.write("empty.csv", "");
    sandbox.write("header.csv", "a,b\n");
    sandbox.write("gone.csv", "a,b\n1,\n3,nan\n5,?\n");
    sandbox.write("bare.csv", "a,b\n1,2\n1,3\n1,5\n");
    sandbox.write("when.csv", "a,b\n1,2024-01-02\n3,2024-01-03\n5,2024-02-02\n");
    sandbox.write("typo.csv", format!("a,b\n1,2\n2,3\n4,1o\n{}", "3,4\n5,7\n".repeat(10)));
    sandbox.write("hole.csv", "a,b\n1,2\n,4\n5,6\n");
    sandbox.write("ragged.csv", "a,b\n1,2\n3\n");
    sandbox.write("one.csv", "a,b\n1,2\n");
    sandbox.write("table.xyz", "a,b\n1,2\n");
    sandbox.write("broken.parquet", "PAR1 no");
    for (line, code, words) in [
        ("missing.csv --target b", 1, &["missing.csv", "neither a file nor a data set"][..]),
        ("yatch --target b", 1, &["did you mean `yacht`?"]),
        (". --target b", 1, &["is a folder"]),
        ("empty.csv --target b", 1, &["empty.csv is empty"]),
        ("header.csv --target b", 1, &["no rows"]),
        ("hole.csv --target b --missing error", 1, &["row 2", "column `a`", "--missing encode"]),
        ("gone.csv --target b", 1, &["gone.csv", "target column `b` has no values"]),
        ("bare.csv --target b", 1, &["no column to learn from", "`a`: constant", "--column NAME=category"]),
        ("when.csv --target b", 1, &["target column `b`", "a time cannot be predicted"]),
        ("typo.csv --target a", 1, &["row 3", "`b`", "`1o` is not a number", "--column \"b=category\""]),
        ("ragged.csv --target b", 1, &["row 2", "1 cells"]),
        ("one.csv --target b", 1, &["1 row", "two are the least"]),
        ("table.xyz --target b", 1, &["table.xyz", ".csv"]),
        ("broken.parquet --target b", 1, &["broken.parquet"]),
        ("flats.csv", 2, &["--target COL", "size, age, city, new, rent"]),
        ("flats.csv --target rnet", 2, &["--target rnet", "did you mean `rent`?"]),
        ("flats.csv --target rent --ignore cty", 2, &["--ignore cty", "did you mean `city`?"]),
        ("flats.csv --target rent --column cty=number", 2, &["--column cty", "did you mean `city`?"]),
        ("flats.csv --target rent --column size=numbr", 2, &["`numbr`", "did you mean `number`?"]),
        ("flats.csv --target rent --column size", 2, &["COL=KIND", "category"]),
        ("flats.csv --target rent --ignore rent", 2, &["--ignore rent", "target"]),
        ("flats.csv --target rent --missing guess", 2, &["guess", "encode"]),
        ("flats.csv --target rent --column city=number", 1, &["row 1", "`city`", "`Aarau` is not a number"]),
        ("flats.csv --target city --task regression", 1, &["city", "text cannot be regressed on"]),
    ] {
        sandbox.fails(&format!("fit {line} --out m.safetensors --report r.html"), code, words);
        // A single row is too few to hold out, and too few for two folds.
        if !line.starts_with("one.csv") {
            sandbox.fails(&format!("evaluate {line} --folds 2"), code, words);
        }
    }
    assert!(sandbox.files_with(".safetensors").is_empty() && sandbox.files_with(".html").is_empty());
    assert!(sandbox.files_with(".part").is_empty());
}

/// A column of six whole numbers, packed, with eleven bytes in the page set to 0x80: the library that reads Parquet panics.
const DAMAGED_PARQUET: &str = "\
    504152311500152C152C2C150C150A15061506000080808080808080808080807E00000000000000000000191C1608154E160000001502192C48016D15\
    02001502250018016100160C191C191C26001C15021925060A191801611500160C164E164E2608491C1500150A150200001656151400164E160C260816\
    4E1400002800191C1C0000005100000050415231";

#[test]
fn a_panic_of_a_library_at_a_damaged_file_is_one_line_of_ours() {
    let sandbox = Sandbox::new();
    let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap();
    sandbox.write("damaged.parquet", DAMAGED_PARQUET.as_bytes().chunks(2).map(byte).collect::<Vec<_>>());
    sandbox.fails("fit damaged.parquet --target a", 1, &["damaged.parquet", "damaged file"]);
}

#[test]
fn wrong_settings_are_usage_errors() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.write("typo.toml", "[network.prior]\nvars = 1.0\n");
    sandbox.write("syntax.toml", "members = = 2\n");
    for (flags, words) in [
        ("--set network.prior.vars=1.0", &["vars", "did you mean `var`?"][..]),
        ("--set trainig.epochs=1", &["trainig", "did you mean `training`?"]),
        ("--set training.epochs", &["KEY=VALUE"]),
        ("--set training.epochs=soon", &["training.epochs=soon"]),
        ("--set network.prior.var=-1", &["var", "positive"]),
        ("--set network.activation=rleu", &["rleu", "did you mean `relu`?"]),
        ("--config typo.toml", &["typo.toml", "line 2", "vars", "did you mean `var`?"]),
        ("--config syntax.toml", &["syntax.toml", "line 1"]),
        ("--test-fraction 1.5", &["--test-fraction 1.5"]),
        ("--threads 0", &["--threads 0"]),
    ] {
        sandbox.fails(&format!("fit flats.csv --target rent --out m.safetensors {flags}"), 2, words);
    }
    sandbox.fails("fit flats.csv --target rent --config no.toml", 1, &["no.toml"]);
    sandbox.fails("fit flats.csv --target rent --no-such-flag", 2, &["--no-such-flag"]);
    sandbox.fails("fit flats.csv --target rent --task guess", 2, &["guess"]);
    sandbox.fails("evaluate flats.csv --target rent --folds 1", 2, &["--folds 1"]);
    sandbox.fails("evaluate flats.csv --target rent --folds 2 --splits f.csv", 2, &["--splits"]);
    sandbox.fails("evaluate flats.csv --target rent --max-splits 0", 2, &["--max-splits"]);
    sandbox.fails("data fetch yatch", 2, &["did you mean `yacht`?"]);
    assert_eq!(sandbox.files(), ["flats.csv", "syntax.toml", "typo.toml"]);
}

#[test]
fn a_place_that_cannot_be_written_is_found_before_training() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    std::fs::create_dir(sandbox.path("folder")).unwrap();
    // So many epochs would not end; the error must come first.
    let long = "--target rent --set training.epochs=10000000";
    sandbox.fails(&format!("fit flats.csv {long} --out no/m.safetensors"), 1, &["no folder no"]);
    sandbox.fails(&format!("fit flats.csv {long} --out folder"), 1, &["folder is a folder"]);
    sandbox.fails(&format!("fit flats.csv {long} --report no/r.html"), 1, &["no folder no"]);
    sandbox.fails(&format!("fit flats.csv {long} --out m.safetensors --report folder"), 1, &["is a folder"]);
    assert_eq!(sandbox.files(), ["flats.csv", "folder"]);
}

#[test]
fn damaged_and_foreign_models_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.ok(&format!("fit flats.csv --target rent --out m.safetensors {QUICK}"));
    let model = sandbox.read("m.safetensors");
    sandbox.write("short.safetensors", &model[..model.len() / 2]);
    sandbox.write("text.safetensors", "no model");
    sandbox.write("nothing.safetensors", "");
    let find = |what: &[u8]| model.windows(what.len()).position(|window| window == what).unwrap();
    let mut newer = model.clone();
    newer[find(br#"\"version\":5"#) + br#"\"version\":"#.len()] = b'9';
    sandbox.write("newer.safetensors", &newer);
    let mut flipped = model.clone();
    flipped[find(br#"\"encoding\":"#) + 2] = b'E';
    sandbox.write("flipped.safetensors", &flipped);
    let mut anonymous = bayespc::Model::from_bytes(&model).unwrap();
    anonymous.notes_mut().remove("encoding");
    sandbox.write("anonymous.safetensors", anonymous.to_bytes().unwrap());
    for (name, words) in [
        ("short", &["short.safetensors", "fit it again", "safetensors file"][..]),
        ("text", &["text.safetensors"]),
        ("nothing", &["nothing.safetensors"]),
        ("newer", &["newer.safetensors", "version 9 is not supported"]),
        ("flipped", &["flipped.safetensors", "damaged", "checksum"]),
        ("absent", &["absent.safetensors", "cannot read"]),
    ] {
        sandbox.fails(&format!("predict {name}.safetensors flats.csv --out p.csv"), 1, words);
        sandbox.fails(&format!("inspect {name}.safetensors"), 1, words);
    }
    sandbox.fails("predict anonymous.safetensors flats.csv", 1, &["does not know the columns"]);
    assert!(!sandbox.path("p.csv").exists());
}

#[test]
fn tables_that_do_not_fit_the_model_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.ok(&format!("fit flats.csv --target rent --out m.safetensors {QUICK}"));
    sandbox.write("lacking.csv", "size,city,new\n5,Bern,true\n");
    sandbox.write("words.csv", "size,age,city,new\nlarge,1,Bern,true\n");
    sandbox.write("header.csv", "size,age,city,new\n");
    for (name, words) in [
        ("lacking.csv", &["no column `age`", "size, city, new"][..]),
        ("words.csv", &["row 1", "`size`", "`large` is not a number"]),
        ("header.csv", &["no rows"]),
        ("absent.csv", &["absent.csv"]),
    ] {
        sandbox.fails(&format!("predict m.safetensors {name} --out p.csv"), 1, words);
    }
    sandbox.fails("predict m.safetensors flats.csv --coverage 1", 2, &["--coverage 1"]);
    sandbox.fails("predict m.safetensors flats.csv --draws 0", 2, &["--draws 0"]);
    sandbox.fails("predict m.safetensors flats.csv --out no/p.csv", 1, &["no folder no"]);
    assert!(!sandbox.path("p.csv").exists() && sandbox.files_with(".part").is_empty());
}

#[test]
fn a_failed_write_leaves_the_old_file_whole() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.write("p.csv", "old");
    sandbox.ok(&format!("fit flats.csv --target rent --out m.safetensors {QUICK}"));
    // The first batch is good, a later row is not.
    let mut text = flats(5000);
    text.push_str("oops,1,Bern,true,1\n");
    sandbox.write("long.csv", text);
    sandbox.fails("predict m.safetensors long.csv --out p.csv", 1, &["row 5001", "`oops` is not a number"]);
    assert_eq!(sandbox.read("p.csv"), b"old");
    assert_eq!(sandbox.files(), ["flats.csv", "long.csv", "m.safetensors", "p.csv"]);
}

#[test]
fn images_have_one_target_and_all_their_pixels() {
    let sandbox = Sandbox::new();
    sandbox.fails("fit mnist --target pixel_3", 2, &["`label`"]);
    sandbox.fails("evaluate mnist --task regression", 2, &["`label`"]);
    sandbox.fails("fit mnist --ignore pixel_3", 2, &["--ignore"]);
    sandbox.fails("fit fashion-mnist --target pixel_3", 2, &["fashion-mnist", "`label`"]);
}
