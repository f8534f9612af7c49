//! What is known of each public data set: its table, origin, licence and published file.

/// A regression data set of the UCI benchmark.
#[derive(Debug)]
pub struct DatasetInfo {
    /// Short name, as in `load_uci("yacht", …)`.
    pub name: &'static str,
    /// Full title.
    pub title: &'static str,
    /// Number of rows.
    pub rows: usize,
    /// Names of the features, in order.
    pub features: &'static [&'static str],
    /// Name of the target, with its unit if it has one.
    pub target: &'static str,
    /// Licence of the data.
    pub licence: &'static str,
    /// Whom to cite.
    pub citation: &'static str,
    /// A caution to those who use the data, if there is one.
    pub note: Option<&'static str>,
    /// Where the data come from.
    pub(crate) published: Published,
    /// SHA-256 of the benchmark table: its doubles, little-endian, row by row, target last.
    pub(crate) values_sha256: &'static str,
}

/// A file as its authors published it, and the way from there to the benchmark table.
#[derive(Debug)]
pub(crate) struct Published {
    /// Name of the file.
    pub file: &'static str,
    /// SHA-256 of the file.
    pub sha256: &'static str,
    /// Addresses, in order of preference; a `.zip` holds the file, anything else is the file.
    pub urls: &'static [&'static str],
    /// How to read it.
    pub layout: Layout,
}

/// How a published file holds its table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layout {
    /// Numbers separated by blanks, no header.
    Blanks,
    /// Numbers separated by semicolons under a header.
    Semicolons,
    /// A sheet of a workbook under a header; then the first `n` columns are rounded to so many
    /// decimals, and the target to so many.
    Sheet { sheet: Sheet, first: Option<(usize, i32)>, target: Option<i32> },
}

/// Which sheet of a workbook.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sheet {
    First,
    Named(&'static str),
}

impl DatasetInfo {
    /// Addresses of the published file, in order of preference.
    pub fn urls(&self) -> &'static [&'static str] {
        self.published.urls
    }

    /// Name of the published file.
    pub fn published_file(&self) -> &'static str {
        self.published.file
    }
}

/// Every UCI data set that [`load_uci`](crate::load_uci) knows.
pub fn catalogue() -> &'static [DatasetInfo] {
    &CATALOGUE
}

static CATALOGUE: [DatasetInfo; 6] = [
    DatasetInfo {
        name: "yacht",
        title: "Yacht Hydrodynamics",
        rows: 308,
        features: &[
            "longitudinal_position_of_center_of_buoyancy",
            "prismatic_coefficient",
            "length_displacement_ratio",
            "beam_draught_ratio",
            "length_beam_ratio",
            "froude_number",
        ],
        target: "residuary_resistance",
        licence: "CC BY 4.0",
        citation: "J. Gerritsma, R. Onnink, A. Versluis (1981/2013), UCI Machine Learning Repository, doi:10.24432/C5XG7R",
        note: None,
        published: Published {
            file: "yacht_hydrodynamics.data",
            sha256: "00dfecc0fc01ddd4c90b558a3ac11b246df8ebcfea130724223475a9a67f0ea1",
            urls: &["https://archive.ics.uci.edu/static/public/243/yacht+hydrodynamics.zip"],
            layout: Layout::Blanks,
        },
        values_sha256: "ec08588637fd93582116a1ead33f0c1e787dae755168073608e030e5282a3f4e",
    },
    DatasetInfo {
        name: "concrete",
        title: "Concrete Compressive Strength",
        rows: 1030,
        features: &[
            "cement",
            "blast_furnace_slag",
            "fly_ash",
            "water",
            "superplasticizer",
            "coarse_aggregate",
            "fine_aggregate",
            "age",
        ],
        target: "compressive_strength",
        licence: "CC BY 4.0",
        citation: "I-C. Yeh (1998/2007), UCI Machine Learning Repository, doi:10.24432/C5PK67",
        note: None,
        published: Published {
            file: "Concrete_Data.xls",
            sha256: "710076c66b9ca3f8050e7942f3dcbdbe04013534daeb0077ffd3079a52d8e0c4",
            urls: &["https://archive.ics.uci.edu/static/public/165/concrete+compressive+strength.zip"],
            layout: Layout::Sheet { sheet: Sheet::First, first: Some((7, 1)), target: Some(2) },
        },
        values_sha256: "d0e2d2f0f50277624d7d00b98c4e8b66465e8d5f2f51738500552b8b10a4689b",
    },
    DatasetInfo {
        name: "wine",
        title: "Wine Quality (red vinho verde)",
        rows: 1599,
        features: &[
            "fixed_acidity",
            "volatile_acidity",
            "citric_acid",
            "residual_sugar",
            "chlorides",
            "free_sulfur_dioxide",
            "total_sulfur_dioxide",
            "density",
            "ph",
            "sulphates",
            "alcohol",
        ],
        target: "quality",
        licence: "CC BY 4.0",
        citation: "P. Cortez, A. Cerdeira, F. Almeida, T. Matos, J. Reis (2009), UCI Machine Learning Repository, doi:10.24432/C56S3T",
        note: None,
        published: Published {
            file: "winequality-red.csv",
            sha256: "4a402cf041b025d4566d954c3b9ba8635a3a8a01e039005d97d6a710278cf05e",
            urls: &[
                "https://archive.ics.uci.edu/static/public/186/wine+quality.zip",
                "https://archive.ics.uci.edu/ml/machine-learning-databases/wine-quality/winequality-red.csv",
            ],
            layout: Layout::Semicolons,
        },
        values_sha256: "d4f6a6d672e0ee31d41fdd93b4b58985b45a31f2f971499c18137c42229278ac",
    },
    DatasetInfo {
        name: "housing",
        title: "Boston Housing",
        rows: 506,
        features: &[
            "CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT",
        ],
        target: "MEDV",
        licence: "none stated, freely redistributed",
        citation: "D. Harrison, D. L. Rubinfeld (1978), Hedonic prices and the demand for clean air, J. Environ. Economics & Management 5",
        note: Some(
            "only for comparison with published results: column B encodes a racial assumption, and several libraries have withdrawn the data for it",
        ),
        published: Published {
            file: "housing.data",
            sha256: "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a",
            urls: &["https://archive.ics.uci.edu/ml/machine-learning-databases/housing/housing.data"],
            layout: Layout::Blanks,
        },
        values_sha256: "832e894115c56dd24ec63848d4a3d9bd921d268d0be1bee2a8f4ee5ea318f5f7",
    },
    DatasetInfo {
        name: "power",
        title: "Combined Cycle Power Plant",
        rows: 9568,
        features: &["AT", "V", "AP", "RH"],
        target: "PE",
        licence: "CC BY 4.0",
        citation: "P. Tüfekci, H. Kaya (2014), UCI Machine Learning Repository, doi:10.24432/C5002N",
        note: None,
        published: Published {
            file: "Folds5x2_pp.xlsx",
            sha256: "ccd490981db2a2f079963b3d9f0aea30d9d338900a0285428dfc6385396f4651",
            urls: &["https://archive.ics.uci.edu/static/public/294/combined+cycle+power+plant.zip"],
            layout: Layout::Sheet { sheet: Sheet::Named("Sheet5"), first: None, target: None },
        },
        values_sha256: "d3c75624ea5df1256c9b8e81560e1f9381014565c5f558d3293831fa521b82e9",
    },
    DatasetInfo {
        name: "energy",
        title: "Energy Efficiency (heating load)",
        rows: 768,
        features: &[
            "relative_compactness",
            "surface_area",
            "wall_area",
            "roof_area",
            "overall_height",
            "orientation",
            "glazing_area",
            "glazing_area_distribution",
        ],
        target: "heating_load",
        licence: "CC BY 4.0",
        citation: "A. Tsanas, A. Xifara (2012), UCI Machine Learning Repository, doi:10.24432/C51307",
        note: None,
        published: Published {
            file: "ENB2012_data.xlsx",
            sha256: "0089fcffc1415e41e2ff63730cca5280efe54fc43d722dfde1b0aaa808e35dc4",
            urls: &["https://archive.ics.uci.edu/static/public/242/energy+efficiency.zip"],
            layout: Layout::Sheet { sheet: Sheet::First, first: Some((8, 2)), target: Some(2) },
        },
        values_sha256: "3563209cb65c108b72e6ee45f56f12e53c3f346f10b6b30a79ec5b7c0a0a1dd9",
    },
];
