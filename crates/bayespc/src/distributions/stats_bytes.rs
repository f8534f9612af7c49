//! Sufficient statistics as bytes, to send to another machine and add there.
//!
//! A safetensors file of four row-major `f64` tensors, `pre_pre`, `post_pre`, `post_post` and `count`, under a checksum.

use safetensors::tensor::SafeTensors;
use serde::{Deserialize, Serialize};

use super::SufficientStats;
use crate::base::container::{Reader, Tensors, checked_header, to_json};
use crate::error::{ModelFileError, Result};

/// The metadata entry.
const KEY: &str = "bayespc-sufficient-statistics";

/// Version this program writes and reads.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u32,
    d_post: usize,
    d_pre: usize,
}

impl SufficientStats {
    /// The bytes of these statistics.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut tensors = Tensors::default();
        tensors.put("pre_pre", &self.pre_pre);
        tensors.put("post_pre", &self.post_pre);
        tensors.put("post_post", &self.post_post);
        tensors.put_row("count", &[self.count]);
        let header = Header { version: VERSION, d_post: self.d_post(), d_pre: self.d_pre() };
        tensors.serialize(KEY, to_json(&header)?)
    }

    /// Read statistics from their bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let file = SafeTensors::deserialize(bytes).map_err(ModelFileError::from)?;
        let value = checked_header(bytes, &file, KEY, VERSION)?;
        let malformed =
            |error: serde_json::Error| ModelFileError::Metadata { key: format!("{KEY}: {error}") };
        let Header { d_post, d_pre, .. } = serde_json::from_value(value).map_err(malformed)?;
        let reader = Reader { file };
        // The squares first: a width that is made up has none.
        let pre_pre = reader.matrix("pre_pre", d_pre, d_pre)?;
        let post_post = reader.matrix("post_post", d_post, d_post)?;
        let post_pre = reader.matrix("post_pre", d_post, d_pre)?;
        Ok(Self { pre_pre, post_pre, post_post, count: reader.values("count", &[1])?[0] })
    }
}

#[cfg(test)]
mod tests {
    use faer::Mat;

    use super::*;
    use crate::error::Error;

    #[test]
    fn statistics_survive_the_way_through_bytes_exactly() {
        let pre = Mat::from_fn(3, 7, |i, j| if i == 2 { 1.0 } else { (i * 7 + j) as f64 / 3.0 });
        let post = Mat::from_fn(2, 7, |i, j| (i + j) as f64 / 7.0);
        let stats = SufficientStats::of(pre.as_ref(), post.as_ref()).unwrap();
        let bytes = stats.to_bytes().unwrap();
        assert_eq!(SufficientStats::from_bytes(&bytes).unwrap(), stats);
        for n in 0..bytes.len() {
            let found = SufficientStats::from_bytes(&bytes[..n]);
            assert!(matches!(found, Err(Error::ModelFile(_))), "cut at {n}");
        }
        for place in 0..bytes.len() {
            for mask in [1 << (place % 8), 0xff] {
                let mut changed = bytes.clone();
                changed[place] ^= mask;
                let found = SufficientStats::from_bytes(&changed);
                assert!(matches!(found, Err(Error::ModelFile(_))), "byte {place}");
            }
        }
    }
}
