//! What is wrong with a request, as an answer: a status, a sentence, and the culprit by itself for programs.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bayespc_data::Error as DataError;
use serde::Serialize;

/// Seconds after which whoever was refused may try again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

/// Why a request is not answered as it would like.
#[derive(Clone, Debug)]
pub struct Problem {
    pub status: StatusCode,
    pub message: String,
    pub culprit: Culprit,
}

/// Where in the request the fault is.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Culprit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// From 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl Problem {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), culprit: Culprit::default() }
    }

    /// The request is wrong.
    pub fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    /// There is no such thing.
    pub fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// Not now.
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    /// A fault of this program, which no request should be able to bring about.
    pub fn defect(what: &str) -> Self {
        let message = format!("a defect of the server, not of the request: {what}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
    }

    pub fn column(mut self, column: &str) -> Self {
        self.culprit.column = Some(column.to_owned());
        self
    }

    pub fn row(mut self, row: usize) -> Self {
        self.culprit.row = Some(row);
        self
    }

    pub fn value(mut self, value: impl Into<String>) -> Self {
        self.culprit.value = Some(value.into());
        self
    }

    /// With a body of the form that a protocol wants.
    pub fn with_body(&self, body: &serde_json::Value) -> Response {
        let mut response = (
            self.status,
            [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))],
            body.to_string(),
        )
            .into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        response
    }
}

#[derive(Serialize)]
struct Body<'a> {
    error: &'a str,
    #[serde(flatten)]
    culprit: &'a Culprit,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Body { error: &self.message, culprit: &self.culprit };
        self.with_body(&serde_json::to_value(body).unwrap_or_default())
    }
}

/// Faults in tables, in the words of a request.
impl From<DataError> for Problem {
    fn from(error: DataError) -> Self {
        match error {
            DataError::WrongType { row, column, value, expected, .. } => {
                Self::bad(format!("row {row}, column `{column}`: `{value}` is not a {expected}"))
                    .column(&column)
                    .row(row)
                    .value(value)
            }
            DataError::NotFinite { row, column, value, .. } => {
                Self::bad(format!("row {row}, column `{column}`: {value} is not finite"))
                    .column(&column)
                    .row(row)
                    .value(value.to_string())
            }
            DataError::MissingValue { row, column, .. } => Self::bad(format!(
                "row {row}, column `{column}`: the value is missing, and this model needs it"
            ))
            .column(&column)
            .row(row),
            DataError::UnsupportedColumn { column, kind, .. } => {
                Self::bad(format!("column `{column}` has values of type {kind}, which cannot be used"))
                    .column(&column)
            }
            DataError::DuplicateColumn { column, .. } => {
                Self::bad(format!("column `{column}` is there twice")).column(&column)
            }
            DataError::ColumnLength { column, found, expected, .. } => {
                Self::bad(format!("column `{column}` has {found} values, others have {expected}"))
                    .column(&column)
            }
            other => Self::bad(other.to_string()),
        }
    }
}

/// What the core refuses is a fault of the numbers it was given.
impl From<bayespc::Error> for Problem {
    fn from(error: bayespc::Error) -> Self {
        Self::bad(format!("the model cannot predict this: {error}"))
    }
}
