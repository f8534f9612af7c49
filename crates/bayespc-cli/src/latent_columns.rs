//! Columns of a table as a latent model sees them, and back: numbers as they are, booleans as 0 and 1, and each category
//! of a short list as a column of 0 and 1, of which the largest wins. Other columns are left as they are.

use anyhow::{Context, Result, anyhow, bail};
use bayespc::model::LatentModel;
use bayespc_data::{Column, Table, Texts, Values};
use faer::{Mat, MatRef};
use serde::{Deserialize, Serialize};

use crate::failure::did_you_mean;
use crate::sink::significant;

/// The note of a model that holds its columns.
const NOTE: &str = "columns";

/// Categories that a column may have, to be filled in.
const MOST_CATEGORIES: usize = 20;

/// Rows there should be of a category, on average: a column of names is no category.
const ROWS_PER_CATEGORY: usize = 5;

/// What a column of the table is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Coding {
    Number,
    Boolean,
    Category(Vec<String>),
}

/// A column that the model knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Coded {
    name: String,
    coding: Coding,
}

impl Coded {
    fn width(&self) -> usize {
        match &self.coding {
            Coding::Number | Coding::Boolean => 1,
            Coding::Category(values) => values.len(),
        }
    }
}

/// The columns of a table that a latent model knows, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatentColumns(Vec<Coded>);

impl LatentColumns {
    /// What can be learned of a table, and why not of the other columns.
    pub fn of(table: &Table) -> (Self, Vec<String>) {
        let (mut known, mut left) = (Vec::new(), Vec::new());
        for column in table.columns() {
            let there = (0..column.n_cells().unwrap_or(0)).filter(|&i| !column.is_missing(i)).count();
            let coding = match &column.values {
                _ if there == 0 => Err("has no value at all"),
                Values::Number(_) => Ok(Coding::Number),
                Values::Bool(_) => Ok(Coding::Boolean),
                Values::Text(texts) => {
                    let mut values: Vec<String> =
                        (0..texts.len()).filter_map(|i| texts.get(i)).map(str::to_owned).collect();
                    values.sort_unstable();
                    values.dedup();
                    if values.len() <= MOST_CATEGORIES && values.len() * ROWS_PER_CATEGORY <= there {
                        Ok(Coding::Category(values))
                    } else {
                        Err("has too many different texts")
                    }
                }
                Values::Time(_) => Err("holds dates"),
                _ => Err("cannot be read"),
            };
            match coding {
                Ok(coding) => known.push(Coded { name: column.name.clone(), coding }),
                Err(why) => left.push(format!("column `{}` {why}: it is left as it is", column.name)),
            }
        }
        (Self(known), left)
    }

    /// The columns that a model was fitted to.
    pub fn of_model(model: &LatentModel, name: &str) -> Result<Self> {
        let columns: Self = match model.notes().get(NOTE) {
            Some(note) => serde_json::from_str(note)
                .with_context(|| format!("{name}: the note `{NOTE}` is damaged; fit it again"))?,
            None => Self::unnamed(model),
        };
        let width: usize = columns.0.iter().map(Coded::width).sum();
        if width != model.n_columns() {
            bail!("{name}: its columns are {width}, its layers have {}; fit it again", model.n_columns());
        }
        Ok(columns)
    }

    /// Of a model that Python wrote: the names it knows, or x0, x1, ….
    fn unnamed(model: &LatentModel) -> Self {
        let note = model.notes().get("python").and_then(|text| serde_json::from_str(text).ok());
        let note: serde_json::Value = note.unwrap_or_default();
        let names = note.get("feature_names").and_then(serde_json::Value::as_array);
        let name = |i: usize| {
            let known = names.and_then(|names| names.get(i)).and_then(serde_json::Value::as_str);
            known.map_or_else(|| format!("x{i}"), str::to_owned)
        };
        Self((0..model.n_columns()).map(|i| Coded { name: name(i), coding: Coding::Number }).collect())
    }

    /// Keep them with the model.
    pub fn keep(&self, model: &mut LatentModel) -> Result<()> {
        model.notes_mut().insert(NOTE.to_owned(), serde_json::to_string(self)?);
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|column| column.name.as_str())
    }

    /// The cells of a table, `d × n`, NaN where one is missing.
    pub fn encode(&self, table: &Table) -> Result<Mat<f64>> {
        let n = table.n_rows();
        let mut cells = Mat::zeros(self.0.iter().map(Coded::width).sum(), n);
        let mut first = 0;
        for known in &self.0 {
            let Ok(column) = table.column(&known.name) else {
                let listed = table.header().iter().map(String::as_str);
                bail!(
                    "{} has no column `{}`, which the model needs{}",
                    table.file(),
                    known.name,
                    did_you_mean(&known.name, listed)
                );
            };
            for row in 0..n {
                let wrong = |value: String, wanted: &str| {
                    anyhow!(
                        "{}, row {}, column `{}`: `{value}` is not {wanted}",
                        table.file(),
                        row + 1,
                        known.name
                    )
                };
                match &known.coding {
                    Coding::Number | Coding::Boolean => {
                        let value = column.number(row).map_err(|value| wrong(value, "a number"))?;
                        let value = value.unwrap_or(f64::NAN);
                        if value.is_infinite() {
                            return Err(wrong(value.to_string(), "a number that can be learned from"));
                        }
                        cells[(first, row)] = value;
                    }
                    Coding::Category(values) => {
                        let text = column.text(row);
                        let code = text.as_ref().map(|text| {
                            values.iter().position(|value| value == text).ok_or_else(|| {
                                wrong(text.clone().into_owned(), "one of the categories the model knows")
                            })
                        });
                        let code = code.transpose()?;
                        for i in 0..values.len() {
                            cells[(first + i, row)] = code.map_or(f64::NAN, |code| f64::from(code == i));
                        }
                    }
                }
            }
            first += known.width();
        }
        Ok(cells)
    }

    /// Columns as a table has them, of `cells` (`d × n`). Cells that are in `given` are as they were; of others numbers
    /// have so many significant digits.
    pub fn decode(&self, cells: MatRef<'_, f64>, given: Option<&Table>, digits: usize) -> Vec<Column> {
        let n = cells.ncols();
        let mut first = 0;
        let mut decoded = Vec::new();
        for known in &self.0 {
            let old = given.and_then(|table| table.column(&known.name).ok());
            let is_there = |row: usize| old.is_some_and(|column| !column.is_missing(row));
            let name = known.name.as_str();
            decoded.push(match &known.coding {
                Coding::Number => {
                    let rounded = |x: f64| significant(x, digits).parse().unwrap_or(x);
                    let cell = |row: usize| {
                        let x = cells[(first, row)];
                        if is_there(row) { x } else { rounded(x) }
                    };
                    Column::numbers(name, (0..n).map(cell).collect())
                }
                Coding::Boolean => {
                    Column::booleans(name, (0..n).map(|row| Some(cells[(first, row)] > 0.5)).collect())
                }
                Coding::Category(values) => {
                    let cell = |row: usize| {
                        let at = |i: usize| cells[(first + i, row)];
                        let best = (0..values.len()).max_by(|&a, &b| at(a).total_cmp(&at(b)));
                        best.map(|i| values[i].as_str())
                    };
                    Column::texts(name, (0..n).map(cell).collect::<Texts>())
                }
            });
            first += known.width();
        }
        decoded
    }

    /// Deviations of the numbers that have any, `NAME_std`.
    pub fn deviations(&self, std: MatRef<'_, f64>) -> Vec<Column> {
        let mut first = 0;
        let mut columns = Vec::new();
        for known in &self.0 {
            let own: Vec<f64> = (0..std.ncols()).map(|row| std[(first, row)]).collect();
            if known.coding == Coding::Number && own.iter().any(|&x| x > 0.0) {
                columns.push(Column::numbers(format!("{}_std", known.name), own));
            }
            first += known.width();
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use bayespc_data::Kinds;

    use super::*;

    #[test]
    fn cells_come_back_as_they_were() {
        let text = "a,ok,city,id\n1.25,true,Bern,p\n,false,Chur,q\n3,,Bern,r\n4,true,,s\n5,false,Chur,t\n6,true,Bern,u\n7,true,Chur,v\n8,true,Bern,w\n9,true,Chur,x\n10,true,Bern,y\n11,false,Chur,z\n";
        let table = Table::from_csv("t", text.as_bytes(), &Kinds::new()).unwrap();
        let (columns, left) = LatentColumns::of(&table);
        assert_eq!(columns.names().collect::<Vec<_>>(), ["a", "ok", "city"]);
        assert!(left.len() == 1 && left[0].contains("`id`"), "{left:?}");
        let cells = columns.encode(&table).unwrap();
        assert_eq!(cells.nrows(), 4);
        assert!(cells[(0, 1)].is_nan() && cells[(1, 2)].is_nan() && cells[(2, 3)].is_nan());
        let filled =
            Mat::from_fn(4, 11, |i, j| if cells[(i, j)].is_nan() { 0.623_456_789 } else { cells[(i, j)] });
        let back = columns.decode(filled.as_ref(), Some(&table), 3);
        assert_eq!(back[0].text(0).unwrap(), "1.25");
        assert_eq!(back[0].text(1).unwrap(), "0.623");
        assert_eq!(back[1].text(2).unwrap(), "true");
        assert_eq!(back[2].text(1).unwrap(), "Chur");
        let other = Table::from_csv("u", b"a,ok,city\n1,true,Basel\n2,true,Bern\n", &Kinds::new()).unwrap();
        let error = columns.encode(&other).unwrap_err().to_string();
        assert!(error.contains("u, row 1, column `city`: `Basel`"), "{error}");
    }
}
