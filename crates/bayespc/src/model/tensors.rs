//! What model files have in common beside plain tensors: natural parameters and scalings.

pub(super) use crate::base::container::{Reader, Tensors, checked_header, to_json};
use crate::data::Standardiser;
use crate::distributions::NaturalParams;
use crate::error::Result;

impl Tensors {
    pub(super) fn put_natural(&mut self, name: &str, natural: &NaturalParams) {
        self.put(&format!("{name}.pre_pre"), &natural.pre_pre);
        self.put(&format!("{name}.post_pre"), &natural.post_pre);
        self.put(&format!("{name}.post_post"), &natural.post_post);
        self.put_row(&format!("{name}.count"), &[natural.count]);
    }
}

impl Reader<'_> {
    pub(super) fn scaling(&self, which: &str, d: usize) -> Result<Standardiser> {
        let scaling = Standardiser {
            offset: self.values(&format!("scaling.{which}.offset"), &[d])?,
            scale: self.values(&format!("scaling.{which}.scale"), &[d])?,
        };
        scaling.validate(d)?;
        Ok(scaling)
    }

    pub(super) fn natural(&self, name: &str, d_post: usize, d_pre: usize) -> Result<NaturalParams> {
        Ok(NaturalParams {
            pre_pre: self.matrix(&format!("{name}.pre_pre"), d_pre, d_pre)?,
            post_pre: self.matrix(&format!("{name}.post_pre"), d_post, d_pre)?,
            post_post: self.matrix(&format!("{name}.post_post"), d_post, d_post)?,
            count: self.values(&format!("{name}.count"), &[1])?[0],
        })
    }
}
