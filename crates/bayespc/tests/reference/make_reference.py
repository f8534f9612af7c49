"""Writes the tables of reference values (`*.json`) that the Rust tests compare with.

    python make_reference.py [--oracle DIR] [--only special distributions relu_moments oracle]

Special functions and densities come from SciPy, integrals from adaptive quadrature, whole training steps from the
NumPy reference implementation (`bpc_reference.py` in the oracle folder). Every file records the versions used.
A matrix is `{"rows": r, "cols": c, "data": [...]}` with row-major data and all digits of every float.
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import scipy
from numpy.polynomial import hermite_e
from scipy import integrate, special, stats

HERE = pathlib.Path(__file__).resolve().parent
PROJECT = HERE.parents[3]


def matrix(a):
    a = np.atleast_2d(np.asarray(a, float))
    return {"rows": a.shape[0], "cols": a.shape[1], "data": a.ravel().tolist()}


def number(x):
    """A float, with infinity spelled out: JSON has none."""
    x = float(x)
    return x if np.isfinite(x) else str(x)


def lines(value):
    if isinstance(value, list) and value and isinstance(value[0], (list, dict)):
        return "[\n " + ",\n ".join(json.dumps(row) for row in value) + "\n]"
    if isinstance(value, dict) and "data" not in value:
        return "{\n " + ",\n ".join(f"{json.dumps(key)}: {json.dumps(row)}" for key, row in value.items()) + "\n}"
    return json.dumps(value)


def write(name, source, **tables):
    head = {"source": source, "scipy": scipy.__version__, "numpy": np.__version__}
    # One line per entry of a table: short files, readable differences.
    body = ",\n".join(f"{json.dumps(key)}: {lines(value)}" for key, value in (head | tables).items())
    (HERE / f"{name}.json").write_text("{\n" + body + "\n}\n")


# ---- special functions ------------------------------------------------------------------------------
def bivariate_normal_cdf(h, k, rho):
    """Φ₂ by Plackett's integral over the correlation: smooth in θ = arcsin r up to r = ±1."""
    if abs(rho) == 1:
        p = special.ndtr(min(h, k)) if rho > 0 else max(0.0, special.ndtr(h) - special.ndtr(-k))
        return float(p)

    if rho == 0:
        return float(special.ndtr(h) * special.ndtr(k))
    side = np.sign(rho)

    def density(from_end):
        """At θ = side · (arccos-distance from ±π/2), where 1 − |sin θ| = 2 sin²(distance / 2) keeps its digits."""
        gap = 2 * np.sin(from_end / 2) ** 2
        return np.exp(-((h - side * k) ** 2 + 2 * side * h * k * gap) / (2 * np.sin(from_end) ** 2)) / (2 * np.pi)

    end = np.arctan2(np.sqrt((1 - rho) * (1 + rho)), abs(rho))
    # The integrand falls steeply just before ±π/2: panels that shrink towards it.
    cuts = np.geomspace(end, np.pi / 2, 40)
    pieces = [integrate.quad(density, a, b, epsabs=1e-18, epsrel=1e-13)[0] for a, b in zip(cuts[:-1], cuts[1:])]
    return float(special.ndtr(h) * special.ndtr(k) + side * sum(pieces))


class StudentT:
    """Student-t. `scipy.special.stdtr` keeps 10 digits near 0 and 9 at 1e9 degrees of freedom: up to 1000 the
    incomplete beta function is used directly, above it quadrature of the density."""

    def __init__(self, nu):
        self.nu = nu
        self.total = 2 * self.left(0.0) if nu > 1000 else np.exp(special.gammaln(nu / 2) - special.gammaln((nu + 1) / 2)) * np.sqrt(np.pi * nu)

    def kernel(self, x):
        return np.exp(-0.5 * (self.nu + 1) * np.log1p(x * x / self.nu))

    def left(self, x):
        cuts = x - np.concatenate([[0], np.geomspace(0.01, 100, 30)])
        return sum(integrate.quad(self.kernel, b, a, epsabs=0, epsrel=2e-14)[0] for a, b in zip(cuts[:-1], cuts[1:]))

    def logpdf(self, x):
        return -0.5 * (self.nu + 1) * np.log1p(x * x / self.nu) - np.log(self.total)

    def cdf(self, x):
        nu, square = self.nu, x * x
        if nu > 1000:
            tail = self.left(-abs(x)) / self.total
        elif square < 0.5:
            tail = 0.5 - 0.5 * special.betainc(0.5, nu / 2, square / (nu + square))
        else:
            tail = 0.5 * special.betainc(nu / 2, 0.5, nu / (nu + square))
        return tail if x <= 0 else 1 - tail

    def ppf(self, p):
        # By Newton's method on log cdf of the lower tail, started at SciPy's digits.
        tail, x = min(p, 1 - p), special.stdtrit(self.nu, min(p, 1 - p))
        if tail < 0.5:
            for _ in range(3):
                cdf = self.cdf(x)
                x -= cdf * np.log(cdf / tail) / np.exp(self.logpdf(x))
        return x if p <= 0.5 else -x


def student_t(nu):
    return stats.norm if np.isinf(nu) else StudentT(nu)


def make_special():
    positive = [1e-8, 1e-3, 0.1, 0.5, 1.0, 1.4616321449683623, 1.5, 2.0, 3.3, 5.0, 7.99, 10.0, 25.5, 100.0, 1e4, 1e8]
    quantiles = [1e-300, 1e-100, 1e-20, 1e-10, 1e-5, 0.001, 0.025, 0.05, 0.1, 0.2, 0.3, 0.45, 0.499, 0.5, 0.501, 0.6, 0.9, 0.975, 0.999, 1 - 1e-10]
    points = [-40.0, -37.5, -30.0, -20.0, -10.0, -6.0, -4.0, -2.0, -1.0, -0.3, -1e-5, 0.0, 1e-9, 0.5, 1.5, 2.5, 5.0, 8.0, 12.0]
    dofs = [0.5, 1.0, 2.0, 3.0, 4.5, 10.0, 30.0, 200.0, 5000.0, 1e6, 1e9, np.inf]
    t_points = [-1000.0, -50.0, -12.0, -5.0, -2.0, -1.0, -0.1, -1e-6, 0.0, 0.3, 1.2, 3.0, 9.0]
    t_quantiles = [1e-12, 1e-6, 0.001, 0.025, 0.1, 0.25, 0.4, 0.49, 0.499999, 0.5, 0.7, 0.95, 0.995]
    grid = [-9.0, -4.0, -1.5, -0.2, 0.0, 0.7, 2.0, 5.0]
    rhos = [-1.0, -0.999999, -0.99, -0.93, -0.8, -0.5, -0.1, 0.0, 0.2, 0.6, 0.75, 0.9, 0.95, 0.9999, 0.99999999, 1.0]
    hermite = []
    for n in [1, 2, 5, 16, 33, 64, 100]:
        x, w = hermite_e.hermegauss(n)
        hermite.append({"n": n, "nodes": x.tolist(), "weights": (w / np.sqrt(2 * np.pi)).tolist()})

    write(
        "special",
        "scipy.special and scipy.stats; Student-t above 1000 degrees of freedom by quadrature; bivariate normal by adaptive quadrature of Plackett's integral; numpy hermegauss",
        digamma=[[x, float(special.digamma(x))] for x in positive],
        ln_gamma=[[x, float(special.gammaln(x))] for x in positive],
        multigammaln=[[a, d, float(special.multigammaln(a, d))] for d in [1, 2, 5, 20, 100] for a in [(d - 1) / 2 + 0.01, d / 2 + 1.0, d + 3.7, 500.0 + d]],
        multi_digamma=[[a, d, float(sum(special.digamma(a + (1 - i) / 2) for i in range(1, d + 1)))] for d in [1, 2, 5, 20] for a in [d / 2 + 1.0, 500.0 + d]],
        normal_cdf=[[x, float(special.ndtr(x))] for x in points],
        normal_pdf=[[x, float(stats.norm.pdf(x))] for x in points],
        normal_quantile=[[p, float(special.ndtri(p))] for p in quantiles],
        student_t_ln_pdf=[[x, number(nu), float(student_t(nu).logpdf(x))] for nu in dofs for x in t_points],
        student_t_cdf=[[x, number(nu), float(student_t(nu).cdf(x))] for nu in dofs for x in t_points],
        student_t_quantile=[[p, number(nu), float(student_t(nu).ppf(p))] for nu in dofs for p in t_quantiles],
        bivariate_normal_cdf=[[h, k, r, bivariate_normal_cdf(h, k, r)] for r in rhos for h in grid for k in grid],
        gauss_hermite=hermite,
    )


# ---- distributions ------------------------------------------------------------------------------------
def random_spd(rng, d, scale=1.0):
    a = rng.standard_normal((d, d + 2))
    return scale * (a @ a.T / (d + 2) + 0.3 * np.eye(d))


def make_distributions():
    rng = np.random.default_rng(20)
    wishart, matrix_normal, multivariate_t = [], [], []
    for d in [1, 2, 3, 6]:
        for dof in [d - 0.5, d + 0.0, d + 2.0, 3.5 * d + 40]:
            scale, x = random_spd(rng, d, 0.7), random_spd(rng, d, dof)
            row = {"d": d, "dof": dof, "scale": matrix(scale), "x": matrix(x)}
            # SciPy's Wishart asks for dof > d − 1, its entropy as well.
            frozen = stats.wishart(df=dof, scale=scale)
            row |= {"logpdf": float(frozen.logpdf(x)), "entropy": float(frozen.entropy()), "mean": matrix(frozen.mean())}
            wishart.append(row)
    for rows, cols in [(1, 1), (1, 4), (3, 1), (2, 3), (5, 4)]:
        mean, x = rng.standard_normal((rows, cols)), rng.standard_normal((rows, cols))
        row_cov, col_cov = random_spd(rng, rows), random_spd(rng, cols, 2.0)
        value = stats.matrix_normal.logpdf(x, mean=mean, rowcov=row_cov, colcov=col_cov)
        matrix_normal.append({"mean": matrix(mean), "x": matrix(x), "row_cov": matrix(row_cov), "col_cov": matrix(col_cov), "logpdf": float(value)})
    for d in [1, 2, 4]:
        for dof in [1.5, 4.0, 250.0]:
            loc, x, shape = rng.standard_normal(d), 2 * rng.standard_normal(d), random_spd(rng, d)
            value = stats.multivariate_t.logpdf(x, loc=loc, shape=shape, df=dof)
            multivariate_t.append({"d": d, "dof": dof, "loc": loc.tolist(), "x": x.tolist(), "shape": matrix(shape), "logpdf": float(value)})
    write("distributions", "scipy.stats wishart, matrix_normal, multivariate_t", wishart=wishart, matrix_normal=matrix_normal, multivariate_t=multivariate_t)


# ---- rectified Gaussians ------------------------------------------------------------------------------
def rectified(mean, var):
    """Mean and variance of max(0, N(mean, var)) by quadrature."""
    s = np.sqrt(var)
    integral = lambda f: integrate.quad(lambda z: f(z) * stats.norm.pdf(z, mean, s), 0, max(0, mean) + 40 * s, points=[max(0, mean)], epsabs=1e-15, epsrel=1e-13, limit=200)[0]
    m = integral(lambda z: z)
    return m, integral(lambda z: (z - m) ** 2) + m * m * special.ndtr(-mean / s)


def rectified_covariance(mean_a, var_a, mean_b, var_b, cov):
    """Cov(relu a, relu b): outer quadrature over a of (relu a − mean) · E[relu b | a], the inner mean in closed form."""
    sa, sb = np.sqrt(var_a), np.sqrt(var_b)
    rho = np.clip(cov / (sa * sb), -1, 1)
    inner_s = sb * np.sqrt((1 - rho) * (1 + rho))

    def inner(x):
        m = mean_b + rho * sb * x
        if inner_s == 0:
            return max(m, 0.0)
        return m * special.ndtr(m / inner_s) + inner_s * stats.norm.pdf(m / inner_s)

    mean, _ = rectified(mean_a, var_a)
    cuts = sorted({-12.0, 12.0} | {c for c in [-mean_a / sa, -mean_b / (rho * sb) if rho else 0.0] if -12 < c < 12})
    # Around each kink of the integrand, panels that shrink with the inner standard deviation.
    fine = {c + d for c in cuts for d in np.multiply.outer([-1, 1], [1e-4, 1e-3, 1e-2, 0.1, 1.0]).ravel() if -12 < c + d < 12}
    cuts = sorted(set(cuts) | fine)
    integrand = lambda x: stats.norm.pdf(x) * (max(mean_a + sa * x, 0.0) - mean) * inner(x)
    return sum(integrate.quad(integrand, a, b, epsabs=1e-15, epsrel=1e-12)[0] for a, b in zip(cuts[:-1], cuts[1:]))


def make_relu_moments():
    moments, covariances = [], []
    for mean in [-6.0, -2.0, -0.5, 0.0, 0.3, 1.0, 4.0]:
        for var in [1e-4, 0.2, 1.0, 9.0]:
            if mean / np.sqrt(var) < -20:
                continue
            m, v = rectified(mean, var)
            moments.append([mean, var, m, v])
    for mean_a, var_a in [(-1.5, 1.0), (0.0, 0.5), (0.8, 2.0), (3.0, 1.0)]:
        for mean_b, var_b in [(-0.7, 0.3), (0.0, 0.5), (2.0, 1.5)]:
            for rho in [-1.0, -0.9999, -0.95, -0.6, -0.2, 0.0, 0.1, 0.5, 0.9, 0.97, 0.999999, 1.0]:
                cov = float(rho * np.sqrt(var_a * var_b))
                covariances.append([mean_a, var_a, mean_b, var_b, cov, rectified_covariance(mean_a, var_a, mean_b, var_b, cov)])
    write(
        "relu_moments",
        "adaptive quadrature (scipy.integrate.quad)",
        columns={"moments": ["mean", "var", "relu_mean", "relu_var"], "covariances": ["mean_a", "var_a", "mean_b", "var_b", "cov", "relu_cov"]},
        moments=moments,
        covariances=[[float(x) for x in row] for row in covariances],
    )


# ---- training steps -----------------------------------------------------------------------------------
def natural(eta):
    return {"pre_pre": matrix(eta[0]), "post_pre": matrix(eta[1]), "post_post": matrix(eta[2]), "count": float(eta[3])}


def layers_of(net):
    return [{"eta": natural(l.eta), "M": matrix(l.M), "precision": matrix(l.precision)} for l in net.layers]


def stack(a):
    """An (n, p, q) array as n matrices."""
    return [matrix(x) for x in a]


def start_of(net):
    return [{"prior": natural(l.prior), "eta": natural(l.eta), "M": matrix(l.M)} for l in net.layers]


def feedback_state(net):
    return {"layers": layers_of(net), "C": [matrix(c) for c in net.C], "t": net.t}


def log_state(net):
    return feedback_state(net) | {"eta_log": {"pre_pre": matrix(net.eta_log[0]), "post_pre": matrix(net.eta_log[1])}, "M_log": matrix(net.M_log)}


def prediction(net, x):
    mean, noise, epistemic = net.predict(x)
    return {"mean": matrix(mean), "noise": matrix(noise) if noise.ndim == 2 else stack(noise), "epistemic": stack(epistemic), "F": [matrix(f) for f in net.F]}


def make_oracle(folder):
    sys.path.insert(0, str(folder))
    from bpc_reference import Network, VarianceNetwork

    rng = np.random.default_rng(7)
    sizes, v0, psi0, seed = [3, 4, 4, 2], 10.0, 1000.0, 3
    x, y, x_test = rng.standard_normal((7, 3)), rng.standard_normal((7, 2)), rng.standard_normal((5, 3))
    new = lambda: Network(sizes, seed=seed, v0=v0, psi0=psi0)

    # Every unit active: a silent one has no gradient at the start, and Adam blows its rounding error up to full steps.
    net = new()
    for layer in net.layers:
        mean = layer.M.copy()
        mean[:, -1] += 3
        layer.eta[1] = mean @ layer.eta[0]
        layer.eta[2] = layer.prior[2] + layer.eta[1] @ mean.T
        layer.refresh()
    relaxation = {"kappa": 0.6, "scale": 3.0, "steps": 10, "lr": 0.01, "layers": start_of(net)}
    relaxed = net.relax(x, y, steps=10, lr=0.01)
    net.step_relaxation(x, y, 0.6, 3.0, steps=10, lr=0.01)
    relaxation |= {"relaxed": [matrix(z) for z in relaxed], "after_one": layers_of(net)}

    net = new()
    feedback = {"kappa": 0.3, "scale": 3.0, "gain": 1.0, "damping": 0.3, "trust": 0.2, "rate": 0.05}
    net.step_feedback(x, y, 0.3, 3.0)
    feedback["after_one"] = feedback_state(net)
    for _ in range(2):
        net.step_feedback(x, y, 0.3, 3.0)
    feedback["after_three"] = feedback_state(net)
    net.finalise(x, y)
    # A hidden layer's finalisation sets η₁ and η₂ and keeps M; its η₃, count and precision stay as they were.
    feedback["finalised"] = layers_of(net)
    feedback["prediction_damping"] = 1.0
    feedback["prediction"] = prediction(net, x_test)

    top = net.layers[-1]
    w, p = top.M + 0.1 * rng.standard_normal(top.M.shape), random_spd(rng, top.dy, 3.0)
    density = {"eta": natural(top.eta), "W": matrix(w), "P": matrix(p), "log_density": float(top.log_density(w, p))}

    variance_sizes = [3, 4, 4, 1]
    y_one = rng.standard_normal((7, 1))
    net = VarianceNetwork(variance_sizes, seed=seed, v0=v0, psi0=psi0)
    variance = {"sizes": variance_sizes, "Y": matrix(y_one), "v0_log": 1.0, "floor": net.floor, "ceiling": 3.0, "kappa": 0.3, "scale": 3.0,
                "gain": 1.0, "damping": 0.3, "trust": 0.2, "rate": 0.05, "prior_log": matrix(net.prior_log), "layers": start_of(net)}
    net.step_feedback(x, y_one, 0.3, 3.0)
    variance["after_one"] = log_state(net)
    for _ in range(2):
        net.step_feedback(x, y_one, 0.3, 3.0)
    variance["after_three"] = log_state(net)
    net.finalise(x, y_one)
    # The variance node's finalisation sets only η₁ and η₂ of every layer and F; η₃ and the count stay as they were.
    variance["finalised"] = [{"pre_pre": matrix(l.eta[0]), "post_pre": matrix(l.eta[1]), "M": matrix(l.M)} for l in net.layers]
    variance["prediction_damping"] = 1.0
    variance["prediction"] = prediction(net, x_test)

    write(
        "oracle",
        "bpc_reference.py, the NumPy reference implementation",
        note="finalise sets η₁, η₂ of hidden layers only (their η₃, count, precision are stale); hidden precision at prediction is F + damping tr(F)/d I",
        layout="samples are ROWS in X, Y, X_test, relaxed activities and predictions; W and M are d_out × (d_in + 1) with the bias in the last column; "
               "a list of matrices in a prediction has one matrix per test sample",
        sizes=sizes, v0=v0, psi0=psi0, seed=seed, X=matrix(x), Y=matrix(y), X_test=matrix(x_test),
        layers=start_of(new()), relaxation=relaxation, feedback=feedback, variance=variance, log_density=density,
    )


def main():
    names = ["special", "distributions", "relu_moments", "oracle"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", type=pathlib.Path, default=PROJECT / "../shared/reference", help="folder of bpc_reference.py")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    arguments = parser.parse_args()
    if "special" in arguments.only:
        make_special()
    if "distributions" in arguments.only:
        make_distributions()
    if "relu_moments" in arguments.only:
        make_relu_moments()
    if "oracle" in arguments.only:
        make_oracle(arguments.oracle)


if __name__ == "__main__":
    main()
