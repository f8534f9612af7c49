//! The little linear algebra the algorithm needs beyond faer's operators: Cholesky factors that solve,
//! invert and give log-determinants, and products written into existing buffers.
//!
//! Products are sequential (faer is built without its thread pool), so their bits never depend on the
//! number of threads.

use faer::Spec;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::linalg::cholesky::llt::factor::LltRegularization;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::{matmul, triangular_inverse, triangular_solve};
use faer::{Accum, Mat, MatMut, MatRef, Par};

use crate::error::{Error, Result};
use crate::real::Real;

/// Lower Cholesky factor L of a symmetric positive definite A = L Lᵀ.
#[derive(Clone, Debug)]
pub struct Cholesky<T: Real = f64> {
    lower: Mat<T>,
}

impl<T: Real> Cholesky<T> {
    /// Factor `a`, of which only the lower triangle is read.
    pub fn new(a: MatRef<'_, T>, what: &'static str) -> Result<Self> {
        let mut factor = Self { lower: Mat::zeros(a.nrows(), a.nrows()) };
        factor.refactor(a, what)?;
        Ok(factor)
    }

    /// The factor of the identity.
    pub fn of_identity(n: usize) -> Self {
        Self { lower: Mat::identity(n, n) }
    }

    /// Factor `a`, reusing this factor's memory. Rounding can make a matrix that is positive definite on
    /// paper indefinite in the machine (duplicated columns, huge scales); then its diagonal is raised by
    /// the smallest relative amount that helps, at most 1e-6.
    pub fn refactor(&mut self, a: MatRef<'_, T>, what: &'static str) -> Result<()> {
        let n = a.nrows();
        let mut jitter = T::zero();
        loop {
            if self.lower.nrows() == n {
                self.lower.copy_from(a);
            } else {
                self.lower = a.to_owned();
            }
            for i in 0..n {
                self.lower[(i, i)] *= T::one() + jitter;
            }
            let mut buffer =
                MemBuffer::new(llt::factor::cholesky_in_place_scratch::<T>(n, Par::Seq, Spec::default()));
            let outcome = llt::factor::cholesky_in_place(
                self.lower.as_mut(),
                LltRegularization::default(),
                Par::Seq,
                MemStack::new(&mut buffer),
                Spec::default(),
            );
            let bad_pivot = match outcome {
                Ok(_) => {
                    (0..n).find(|&i| !(self.lower[(i, i)].is_finite() && self.lower[(i, i)] > T::zero()))
                }
                Err(llt::factor::LltError::NonPositivePivot { index }) => Some(index),
            };
            let Some(pivot) = bad_pivot else {
                zero_upper(self.lower.as_mut());
                return Ok(());
            };
            let raised =
                if jitter == T::zero() { T::epsilon() * T::lit(n as f64) } else { jitter * T::lit(10.0) };
            if raised > T::lit(1e-6).max(T::epsilon() * T::lit(100.0))
                || !(0..n).all(|i| a[(i, i)].is_finite())
            {
                return Err(Error::NotPositiveDefinite { what, pivot });
            }
            jitter = raised;
        }
    }

    /// The factor L, upper triangle zero.
    pub fn lower(&self) -> MatRef<'_, T> {
        self.lower.as_ref()
    }

    /// Width of the matrix.
    pub fn dim(&self) -> usize {
        self.lower.nrows()
    }

    /// log|A| = 2 Σ log L_ii.
    pub fn log_det(&self) -> T {
        let half = (0..self.dim()).fold(T::zero(), |sum, i| sum + self.lower[(i, i)].ln());
        half + half
    }

    /// B ← A⁻¹ B.
    pub fn solve_in_place(&self, mut rhs: MatMut<'_, T>) {
        self.solve_lower_in_place(rhs.as_mut());
        self.solve_upper_in_place(rhs);
    }

    /// B ← L⁻¹ B.
    pub fn solve_lower_in_place(&self, rhs: MatMut<'_, T>) {
        triangular_solve::solve_lower_triangular_in_place(self.lower.as_ref(), rhs, Par::Seq);
    }

    /// B ← L⁻ᵀ B.
    pub fn solve_upper_in_place(&self, rhs: MatMut<'_, T>) {
        triangular_solve::solve_upper_triangular_in_place(self.lower.transpose(), rhs, Par::Seq);
    }

    /// A⁻¹ B.
    pub fn solve(&self, rhs: MatRef<'_, T>) -> Mat<T> {
        let mut solution = rhs.to_owned();
        self.solve_in_place(solution.as_mut());
        solution
    }

    /// L⁻¹.
    pub fn inverse_lower(&self) -> Mat<T> {
        let mut inverse = Mat::zeros(self.dim(), self.dim());
        triangular_inverse::invert_lower_triangular(inverse.as_mut(), self.lower.as_ref(), Par::Seq);
        inverse
    }

    /// A⁻¹ = L⁻ᵀ L⁻¹, exactly symmetric.
    pub fn inverse(&self) -> Mat<T> {
        let mut inverse = Mat::zeros(self.dim(), self.dim());
        self.inverse_into(&mut Mat::zeros(self.dim(), self.dim()), &mut inverse);
        inverse
    }

    /// A⁻¹ into `inverse`, with `root` as room for L⁻¹; both `n × n`.
    pub fn inverse_into(&self, root: &mut Mat<T>, inverse: &mut Mat<T>) {
        triangular_inverse::invert_lower_triangular(root.as_mut(), self.lower.as_ref(), Par::Seq);
        triangular::matmul(
            inverse.as_mut(),
            BlockStructure::TriangularLower,
            Accum::Replace,
            root.transpose(),
            BlockStructure::TriangularUpper,
            root.as_ref(),
            BlockStructure::TriangularLower,
            T::one(),
            Par::Seq,
        );
        mirror_lower(inverse.as_mut());
    }
}

/// dst ← A B, or dst ← dst + α A B.
pub fn product_into<T: Real>(dst: MatMut<'_, T>, accum: Accum, a: MatRef<'_, T>, b: MatRef<'_, T>, alpha: T) {
    matmul::matmul(dst, accum, a, b, alpha, Par::Seq);
}

/// Lower triangle of dst ← (dst +) α A Bᵀ, where the result is known to be symmetric.
pub fn symmetric_product_into<T: Real>(
    dst: MatMut<'_, T>,
    accum: Accum,
    a: MatRef<'_, T>,
    b: MatRef<'_, T>,
    alpha: T,
) {
    triangular::matmul(
        dst,
        BlockStructure::TriangularLower,
        accum,
        a,
        BlockStructure::Rectangular,
        b.transpose(),
        BlockStructure::Rectangular,
        alpha,
        Par::Seq,
    );
}

/// Copy the lower triangle onto the upper one.
pub fn mirror_lower<T: Real>(mut a: MatMut<'_, T>) {
    for j in 0..a.ncols() {
        for i in j + 1..a.nrows() {
            a[(j, i)] = a[(i, j)];
        }
    }
}

fn zero_upper<T: Real>(mut a: MatMut<'_, T>) {
    for j in 1..a.ncols() {
        for i in 0..j {
            a[(i, j)] = T::zero();
        }
    }
}

/// ½ (A + Aᵀ).
pub fn symmetrised(a: MatRef<'_, f64>) -> Mat<f64> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| 0.5 * (a[(i, j)] + a[(j, i)]))
}

/// tr A.
pub fn trace<T: Real>(a: MatRef<'_, T>) -> T {
    (0..a.nrows()).fold(T::zero(), |sum, i| sum + a[(i, i)])
}

/// Σ_ij A_ij B_ij = tr(Aᵀ B), in one fixed order.
pub fn inner<T: Real>(a: MatRef<'_, T>, b: MatRef<'_, T>) -> T {
    debug_assert_eq!((a.nrows(), a.ncols()), (b.nrows(), b.ncols()));
    let mut sum = T::zero();
    for j in 0..a.ncols() {
        match (a.col(j).try_as_col_major(), b.col(j).try_as_col_major()) {
            (Some(a), Some(b)) => sum += dot(a.as_slice(), b.as_slice()),
            _ => (0..a.nrows()).for_each(|i| sum += a[(i, j)] * b[(i, j)]),
        }
    }
    sum
}

/// Σ a_i b_i in eight running sums, which the compiler keeps in vector registers.
pub(crate) fn dot<T: Real>(a: &[T], b: &[T]) -> T {
    let mut sums = [T::zero(); 8];
    let (a_chunks, b_chunks) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest = a_chunks.remainder().iter().zip(b_chunks.remainder());
    let rest = rest.fold(T::zero(), |sum, (&a, &b)| sum + a * b);
    for (a, b) in a_chunks.zip(b_chunks) {
        for k in 0..8 {
            sums[k] += a[k] * b[k];
        }
    }
    sums.into_iter().fold(rest, |sum, part| sum + part)
}

/// dst_ij ← f(dst_ij, a_ij, b_ij).
pub fn update(dst: &mut Mat<f64>, a: &Mat<f64>, b: &Mat<f64>, f: impl Fn(f64, f64, f64) -> f64) {
    for j in 0..dst.ncols() {
        let (a, b) = (a.col_as_slice(j), b.col_as_slice(j));
        for ((dst, &a), &b) in dst.col_as_slice_mut(j).iter_mut().zip(a).zip(b) {
            *dst = f(*dst, a, b);
        }
    }
}

/// x, or 0 where it is too small to matter beside anything. What decays geometrically (the statistics of a unit
/// that fell silent) would end in subnormal numbers, on which processors are a hundred times slower; the bound
/// leaves room for a product of two.
#[inline]
pub fn without_dust<T: Real>(x: T) -> T {
    if x.abs() < T::DUST { T::zero() } else { x }
}

/// c · I, `n × n`.
pub fn scaled_identity(n: usize, c: f64) -> Mat<f64> {
    Mat::from_fn(n, n, |i, j| if i == j { c } else { 0.0 })
}

/// dst ← src in another working precision.
pub fn cast_into<S: Real, T: Real>(dst: &mut Mat<T>, src: MatRef<'_, S>) {
    faer::zip!(dst, src).for_each(|faer::unzip!(dst, src)| *dst = T::lit(src.as_f64()));
}

/// The same matrix in another working precision.
pub fn cast<S: Real, T: Real>(a: MatRef<'_, S>) -> Mat<T> {
    Mat::from_fn(a.nrows(), a.ncols(), |i, j| T::lit(a[(i, j)].as_f64()))
}

/// Largest eigenvalue of a symmetric positive semi-definite matrix, by power iteration.
///
/// The result approaches λ_max from below and is at least 0.8 λ_max, so that a gradient step of 1/λ stays
/// below the limit 2/λ_max.
pub fn largest_eigenvalue<T: Real>(a: MatRef<'_, T>) -> T {
    let times_a = |v: MatRef<'_, T>, image: &mut Mat<T>| {
        product_into(image.as_mut(), Accum::Replace, a, v, T::one());
    };
    let estimate = PowerIteration::new(a.nrows()).run(times_a);
    checked_eigenvalue(a, estimate)
}

/// The estimate if it is at least 0.8 λ_max, otherwise λ_max. Power iteration may settle on another
/// eigenvector when its start hardly meets the leading one. A factor of λI − A exists only for λ > λ_max
/// and tells.
pub(crate) fn checked_eigenvalue<T: Real>(a: MatRef<'_, T>, estimate: T) -> T {
    if !(estimate.is_finite() && estimate > T::zero()) {
        return estimate;
    }
    let bound = T::lit(1.25) * estimate;
    let gap = Mat::from_fn(a.nrows(), a.ncols(), |i, j| {
        let own = if i == j { bound } else { T::zero() };
        own - a[(i, j)]
    });
    if Cholesky::new(gap.as_ref(), "the gap to the largest eigenvalue").is_ok() {
        return estimate;
    }
    a.self_adjoint_eigenvalues(faer::Side::Lower)
        .ok()
        .and_then(|ascending| ascending.last().copied())
        .unwrap_or(estimate)
}

/// Power iteration that goes on from where it stopped: of a matrix that has changed a little, the leading
/// eigenvector is nearly known.
#[derive(Clone, Debug)]
pub(crate) struct PowerIteration<T: Real> {
    vector: Mat<T>,
    image: Mat<T>,
}

impl<T: Real> PowerIteration<T> {
    /// A start without symmetry, so that it is not orthogonal to the leading eigenvector by accident.
    pub fn new(n: usize) -> Self {
        let start = |i: usize, _| T::one() + T::lit(0.1) * T::lit(((i * 7 + 3) % 11) as f64);
        Self { vector: Mat::from_fn(n, 1, start), image: Mat::zeros(n, 1) }
    }

    /// λ_max from below, where `times(v, image)` sets image ← A v; 0 if A is zero or not finite.
    pub fn run(&mut self, mut times: impl FnMut(MatRef<'_, T>, &mut Mat<T>)) -> T {
        let norm = |v: &Mat<T>| inner(v.as_ref(), v.as_ref()).sqrt();
        let mut value = T::zero();
        for _ in 0..200 {
            times(self.vector.as_ref(), &mut self.image);
            let length = norm(&self.image);
            if !(length > T::zero() && length.is_finite()) {
                return T::zero();
            }
            let estimate = length / norm(&self.vector);
            let inverse = T::one() / length;
            faer::zip!(&mut self.vector, &self.image)
                .for_each(|faer::unzip!(v, image)| *v = inverse * *image);
            let settled = (estimate - value).abs() <= T::lit(1e-3) * estimate;
            value = estimate;
            if settled {
                break;
            }
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use approx::assert_relative_eq;

    fn example() -> Mat<f64> {
        Mat::from_fn(4, 4, |i, j| if i == j { 3.0 + i as f64 } else { 1.0 / (1.0 + i as f64 + j as f64) })
    }

    #[test]
    fn inverse_times_matrix_is_the_identity() {
        let a = example();
        let product = Cholesky::new(a.as_ref(), "a").unwrap().inverse() * &a;
        for j in 0..4 {
            for i in 0..4 {
                assert_relative_eq!(product[(i, j)], f64::from(i == j), epsilon = 1e-14);
            }
        }
    }

    #[test]
    fn an_indefinite_matrix_is_an_error_that_names_it() {
        let a = Mat::from_fn(2, 2, |i, j| if i == j { 1.0 } else { 2.0 });
        let error = Cholesky::new(a.as_ref(), "a").unwrap_err();
        assert!(matches!(error, Error::NotPositiveDefinite { what: "a", pivot: 1 }), "{error}");
    }

    #[test]
    fn a_singular_matrix_is_factored_with_the_smallest_jitter() {
        let a = Mat::from_fn(3, 3, |_, _| 1e24);
        let factor = Cholesky::new(a.as_ref(), "a").unwrap();
        let rebuilt = factor.lower() * factor.lower().transpose();
        assert_relative_eq!(rebuilt[(2, 1)], 1e24, max_relative = 1e-6);
    }

    #[test]
    fn power_iteration_finds_the_largest_eigenvalue() {
        let a = Mat::from_fn(5, 5, |i, j| if i == j { 1.0 + i as f64 } else { 0.0 });
        assert_relative_eq!(largest_eigenvalue(a.as_ref()), 5.0, max_relative = 1e-2);
    }

    #[test]
    fn the_largest_eigenvalue_is_found_from_a_start_orthogonal_to_its_vector() {
        // I + 10 u uᵀ with u orthogonal to the start (1.3, 2).
        let u = [2.0 / 5.69_f64.sqrt(), -1.3 / 5.69_f64.sqrt()];
        let a = Mat::from_fn(2, 2, |i, j| f64::from(i == j) + 10.0 * u[i] * u[j]);
        assert_relative_eq!(largest_eigenvalue(a.as_ref()), 11.0, max_relative = 1e-12);
    }
}
