//! The cells of a table, standardised, and which of them are missing.

use faer::{Mat, MatRef};

use crate::data::Standardiser;
use crate::error::{Error, Result};

/// Standardised cells; samples are columns.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    /// (x − m)/s, `d × n`; 0 where a cell is missing.
    pub values: Mat<f64>,
    /// Numbers of the cells that are missing, in each sample.
    pub missing: Vec<Vec<usize>>,
}

impl Cells {
    /// The cells of `table` (`d × n`), NaN where one is missing.
    pub fn new(table: MatRef<'_, f64>, scaling: &Standardiser) -> Result<Self> {
        if table.nrows() != scaling.dim() {
            return Err(Error::Shape {
                what: "table",
                axis: "columns",
                found: table.nrows(),
                expected: scaling.dim(),
            });
        }
        let mut values = Mat::zeros(table.nrows(), table.ncols());
        let mut missing = vec![Vec::new(); table.ncols()];
        for row in 0..table.ncols() {
            for column in 0..table.nrows() {
                let value = table[(column, row)];
                if value.is_nan() {
                    missing[row].push(column);
                    continue;
                }
                let standard = (value - scaling.offset[column]) / scaling.scale[column];
                if !standard.is_finite() {
                    return Err(Error::NotFinite { what: "table", row, column, value });
                }
                values[(column, row)] = standard;
            }
        }
        Ok(Self { values, missing })
    }

    /// Number of columns of the table.
    pub fn d(&self) -> usize {
        self.values.nrows()
    }

    /// Number of rows of the table.
    pub fn n(&self) -> usize {
        self.values.ncols()
    }

    /// Least and largest cell of each column, and its mean 0 between them.
    pub fn range(&self) -> Vec<[f64; 2]> {
        let of_row = |row| self.values.row(row).iter().fold([0.0_f64; 2], |[a, b], x| [a.min(*x), b.max(*x)]);
        (0..self.d()).map(of_row).collect()
    }

    /// Some of the rows.
    pub fn rows(&self, rows: &[usize]) -> Self {
        Self {
            values: Mat::from_fn(self.d(), rows.len(), |i, j| self.values[(i, rows[j])]),
            missing: rows.iter().map(|&row| self.missing[row].clone()).collect(),
        }
    }

    /// The same without the cells `taken` says; a row's cells are asked for from left to right.
    pub fn without(&self, mut taken: impl FnMut(usize, usize) -> bool) -> Self {
        let mut left = self.clone();
        for row in 0..self.n() {
            let gone = |column: &usize| self.missing[row].contains(column) || taken(row, *column);
            left.missing[row] = (0..self.d()).filter(gone).collect();
            for &column in &left.missing[row] {
                left.values[(column, row)] = 0.0;
            }
        }
        left
    }
}

/// Mean and deviation of the cells of each column of `table` (`d × n`) that are there.
pub(super) fn scaling(table: MatRef<'_, f64>) -> Result<Standardiser> {
    let mut all = Standardiser::identity(table.nrows());
    for column in 0..table.nrows() {
        let there = |row: &usize| !table[(column, *row)].is_nan();
        let rows: Vec<usize> = (0..table.ncols()).filter(there).collect();
        if rows.is_empty() {
            return Err(Error::EmptyColumn { column });
        }
        if let Some(&row) = rows.iter().find(|&&row| table[(column, row)].is_infinite()) {
            return Err(Error::NotFinite { what: "table", row, column, value: table[(column, row)] });
        }
        let values = Mat::from_fn(1, rows.len(), |_, j| table[(column, rows[j])]);
        let own = Standardiser::fit(values.as_ref())?;
        (all.offset[column], all.scale[column]) = (own.offset[0], own.scale[0]);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_standardised_by_what_is_there() {
        let nan = f64::NAN;
        let table = Mat::from_fn(2, 3, |i, j| [[1.0, 3.0, nan], [nan, 5.0, 5.0]][i][j]);
        let scaling = scaling(table.as_ref()).unwrap();
        assert_eq!(
            (scaling.offset.as_slice(), scaling.scale.as_slice()),
            ([2.0, 5.0].as_slice(), [1.0, 1.0].as_slice())
        );
        let cells = Cells::new(table.as_ref(), &scaling).unwrap();
        assert_eq!(cells.missing, [vec![1], vec![], vec![0]]);
        assert_eq!((cells.values[(0, 1)], cells.values[(0, 2)]), (1.0, 0.0));
        assert_eq!(cells.range(), [[-1.0, 1.0], [0.0, 0.0]]);
        let fewer = cells.without(|row, column| (row, column) == (1, 0));
        assert_eq!(fewer.missing, [vec![1], vec![0], vec![0]]);
        assert_eq!(fewer.values[(0, 1)], 0.0);
    }

    #[test]
    fn what_cannot_be_learned_from_is_an_error_that_names_it() {
        let table = Mat::from_fn(2, 2, |i, _| if i == 1 { f64::NAN } else { 0.0 });
        assert!(matches!(scaling(table.as_ref()), Err(Error::EmptyColumn { column: 1 })));
        let table = Mat::from_fn(1, 2, |_, j| if j == 1 { f64::INFINITY } else { 0.0 });
        assert!(matches!(scaling(table.as_ref()), Err(Error::NotFinite { row: 1, column: 0, .. })));
        let known = Standardiser::identity(1);
        assert!(matches!(Cells::new(table.as_ref(), &known), Err(Error::NotFinite { row: 1, .. })));
        assert!(matches!(Cells::new(table.as_ref(), &Standardiser::identity(3)), Err(Error::Shape { .. })));
    }
}
