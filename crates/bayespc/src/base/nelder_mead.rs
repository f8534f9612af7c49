//! Where a function of a few numbers is smallest, by its values alone (Nelder and Mead 1965).

/// Reflection, expansion, contraction and shrinking.
const FACTORS: (f64, f64, f64, f64) = (1.0, 2.0, 0.5, 0.5);

/// Where `f` is smallest near `start`. The first simplex has edges of length `step`; it ends when its values differ by
/// less than `tolerance`, or after `most` evaluations. A value that is not a number counts as the largest.
pub(crate) fn minimise<const N: usize>(
    f: impl Fn(&[f64; N]) -> f64,
    start: [f64; N],
    step: f64,
    (tolerance, most): (f64, usize),
) -> ([f64; N], f64) {
    let value = |x: &[f64; N]| Some(f(x)).filter(|value| !value.is_nan()).unwrap_or(f64::INFINITY);
    let mut simplex: Vec<([f64; N], f64)> = (0..=N)
        .map(|k| {
            let mut x = start;
            if k > 0 {
                x[k - 1] += step;
            }
            (x, value(&x))
        })
        .collect();
    let mut evaluations = N + 1;
    loop {
        simplex.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (best, worst) = (simplex[0], simplex[N]);
        if worst.1 - best.1 < tolerance || evaluations >= most {
            return best;
        }
        let centre: [f64; N] =
            std::array::from_fn(|i| simplex[..N].iter().map(|(x, _)| x[i]).sum::<f64>() / N as f64);
        let along = |t: f64| -> ([f64; N], f64) {
            let x = std::array::from_fn(|i| centre[i] + t * (centre[i] - worst.0[i]));
            (x, value(&x))
        };
        let reflected = along(FACTORS.0);
        evaluations += 1;
        if reflected.1 < best.1 {
            let expanded = along(FACTORS.1);
            evaluations += 1;
            simplex[N] = if expanded.1 < reflected.1 { expanded } else { reflected };
        } else if reflected.1 < simplex[N - 1].1 {
            simplex[N] = reflected;
        } else {
            let contracted = along(if reflected.1 < worst.1 { FACTORS.2 } else { -FACTORS.2 });
            evaluations += 1;
            if contracted.1 < worst.1.min(reflected.1) {
                simplex[N] = contracted;
            } else {
                for vertex in &mut simplex[1..] {
                    let x = std::array::from_fn(|i| best.0[i] + FACTORS.3 * (vertex.0[i] - best.0[i]));
                    *vertex = (x, value(&x));
                }
                evaluations += N;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::minimise;

    #[test]
    fn the_bottom_of_a_curved_valley_is_found() {
        // Rosenbrock's, and a bowl that is not a number on one side.
        let rosenbrock = |x: &[f64; 2]| (1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2);
        let (x, value) = minimise(rosenbrock, [-1.2, 1.0], 0.5, (1e-14, 1000));
        assert!((x[0] - 1.0).abs() < 1e-5 && (x[1] - 1.0).abs() < 1e-5 && value < 1e-10, "{x:?}");
        let bowl = |x: &[f64; 3]| x.iter().map(|v| (v.ln() - 1.0).powi(2)).sum::<f64>();
        let (x, _) = minimise(bowl, [0.5; 3], 1.0, (1e-14, 2000));
        assert!(x.iter().all(|v| (v - 1f64.exp()).abs() < 1e-4), "{x:?}");
    }
}
