"""Tables as people have them, against the same tables cleaned by hand.

    .venv/bin/python scripts/realistic_tables.py [--seeds 3] [--rows 1500] [--write FOLDER]

Three seeded tables: houses (as Ames: 60 columns, ordinal words, dates, a number with thousands separators,
holes that mean "none"), bank (31 columns, classes, rare jobs, money, a contact date) and sensors (50 columns,
a time stamp, dead and constant sensors, outliers). Each is fitted raw, by one call and no option, and again
as an array that was cleaned with care: identifiers, constants and remarks dropped, dates taken apart,
outliers and holes filled and marked, categories coded. Scores are of a quarter of the rows, held out: RMSE
for values, mean negative log probability for classes.
`--write` leaves the raw tables as CSV files, for the command. A run takes some minutes.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from bayespc import BPCClassifier, BPCRegressor

GRADES = ["poor", "fair", "typical", "good", "excellent"]


def holes(rng, column, share):
    """Return the column with a share of its cells missing."""
    return column.mask(pd.Series(rng.random(len(column)) < share))


def houses(n, seed):
    """Return a table of houses and the name of its target."""
    rng = np.random.default_rng(seed)
    area = np.exp(rng.normal(7.2, 0.35, n)).round()
    lot = (area * rng.uniform(3, 12, n)).round()
    quality = rng.integers(1, 6, n)
    condition = np.clip(quality + rng.integers(-1, 2, n), 1, 5)
    year = rng.integers(1900, 2011, n)
    district = rng.choice([f"District {i}" for i in range(25)], n, p=np.arange(1, 26) / 325)
    worth = dict(zip(sorted(set(district)), rng.normal(0, 0.12, 25), strict=False))
    sold = pd.Timestamp("2006-01-01") + pd.to_timedelta(rng.integers(0, 1700, n), unit="D")
    has_pool, has_garage = rng.random(n) < 0.05, rng.random(n) < 0.85
    garage_year = np.where(has_garage, np.maximum(year, rng.integers(1950, 2011, n)), np.nan)
    baths, rooms = rng.integers(1, 4, n), np.clip((area / 350 + rng.normal(0, 1, n)).round(), 2, 12)
    season = np.cos(2 * np.pi * (sold.dayofyear - 160) / 365.25)
    trend = (sold - pd.Timestamp("2006-01-01")).days / 1700
    log_price = (
        11.2
        + 0.45 * np.log(area / 1500)
        + 0.08 * np.log(lot / 10000)
        + 0.09 * quality
        + 0.03 * condition
        + 0.002 * (year - 1970)
        + np.vectorize(worth.get)(district)
        + 0.12 * has_pool
        + 0.10 * has_garage
        + 0.05 * baths
        + 0.04 * season
        - 0.08 * trend
        + 0.10 * rng.normal(size=n)
    )
    frame = pd.DataFrame(
        {
            "Id": np.arange(1, n + 1),
            "LotArea": [f"{int(x):,}" for x in lot],
            "LivingArea": area,
            "OverallQual": np.array(GRADES)[quality - 1],
            "OverallCond": np.array(GRADES)[condition - 1],
            "YearBuilt": year,
            "District": district,
            "SaleDate": sold.strftime("%Y-%m-%d"),
            "PoolQC": pd.Series(np.where(has_pool, rng.choice(["good", "typical"], n), None)),
            "GarageYear": garage_year,
            "GarageType": pd.Series(np.where(has_garage, rng.choice(["attached", "detached"], n), None)),
            "Baths": baths,
            "Rooms": rooms,
            "CentralAir": np.where(rng.random(n) < 0.93, "Y", "N"),
            "Utilities": "AllPub",
            "Remarks": [f"{rng.choice(['sunny', 'quiet', 'large'])} house no {i}" for i in range(n)],
            "LotFrontage": holes(rng, pd.Series(np.sqrt(lot) * rng.uniform(0.5, 1, n)), 0.18),
        }
    )
    for i in range(20):
        noisy = area * rng.uniform(0.05, 0.4) + rng.normal(0, 120, n)
        noisy[rng.random(n) < 0.004] *= 20
        frame[f"Surface{i}"] = holes(rng, pd.Series(noisy.round(1)), 0.03 if i % 4 == 0 else 0.0)
    for i in range(15):
        frame[f"Material{i}"] = rng.choice(
            ["brick", "wood", "stone", "vinyl", "other"], n, p=[0.4, 0.3, 0.15, 0.1, 0.05]
        )
    for i in range(8):
        frame[f"Grade{i}"] = holes(rng, pd.Series(rng.choice(GRADES, n)), 0.05)
    return frame, pd.Series(np.exp(log_price).round(-2), name="SalePrice")


def bank(n, seed):
    """Return a table of calls and whether a deposit was made."""
    rng = np.random.default_rng(seed)
    jobs = [
        "admin",
        "blue-collar",
        "technician",
        "services",
        "management",
        "retired",
        "student",
        "unemployed",
    ]
    rare = [f"trade {i}" for i in range(30)]
    job = np.where(rng.random(n) < 0.97, rng.choice(jobs, n), rng.choice(rare, n))
    age, balance = rng.integers(18, 90, n), rng.standard_t(3, n) * 1500 + 1200
    duration = rng.exponential(260, n).round()
    called = pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.integers(0, 800 * 24, n), unit="h")
    previous = rng.poisson(0.5, n)
    loan, housing, default = rng.random(n) < 0.16, rng.random(n) < 0.55, rng.random(n) < 0.02
    outcome = np.where(
        previous > 0, rng.choice(["failure", "success", "other"], n, p=[0.6, 0.25, 0.15]), None
    )
    contact = rng.choice(["cellular", "telephone", None], n, p=[0.65, 0.07, 0.28])
    logit = (
        -1.2
        + 1.3 * np.log1p(duration / 150)
        - 0.7 * loan
        - 0.6 * housing
        + 1.8 * (outcome == "success")
        + 0.9 * np.isin(job, ["student", "retired"])
        - 0.9 * pd.isna(contact)
        + 0.5 * np.cos(2 * np.pi * (called.dayofyear - 100) / 365.25)
        + 0.4 * (called.dayofweek == 3)
        + 0.0001 * np.clip(balance, -2000, 8000)
    )
    frame = pd.DataFrame(
        {
            "customer_id": rng.permutation(10 * n)[:n] + 10_000,
            "age": age,
            "job": job,
            "marital": rng.choice(["single", "married", "divorced"], n),
            "education": rng.choice(["primary", "secondary", "tertiary", None], n, p=[0.15, 0.5, 0.3, 0.05]),
            "default": default,
            "balance": [f"€{x:,.2f}" for x in balance],
            "housing": np.where(housing, "yes", "no"),
            "loan": np.where(loan, "yes", "no"),
            "contact": contact,
            "called": called,
            "duration": duration,
            "campaign": rng.geometric(0.35, n),
            "pdays": np.where(previous > 0, rng.integers(1, 400, n), np.nan),
            "previous": previous,
            "poutcome": outcome,
            "branch": "central",
        }
    )
    for i in range(14):
        frame[f"index_{i}"] = holes(
            rng, pd.Series(rng.normal(size=n).cumsum() / 10), 0.08 if i % 3 == 0 else 0.0
        )
    return frame, pd.Series(np.where(logit + rng.logistic(size=n) > 0, "yes", "no"), name="deposit")


def sensors(n, seed):
    """Return readings of a plant and its load."""
    rng = np.random.default_rng(seed)
    when = pd.date_range("2023-01-01", periods=n, freq="71min")
    hour, day = when.hour + when.minute / 60, when.dayofweek
    outside = 10 - 8 * np.cos(2 * np.pi * when.dayofyear / 365) + 4 * np.sin(2 * np.pi * (hour - 9) / 24)
    outside = np.asarray(outside + rng.normal(0, 2, n))
    mode = rng.choice(["normal", "eco", "boost", "service"], n, p=[0.7, 0.2, 0.08, 0.02])
    load = (
        60
        + 18 * np.sin(2 * np.pi * (hour - 8) / 24)
        - 14 * (day >= 5)
        + 0.08 * np.maximum(0, 16 - outside) ** 2
        + 12 * (mode == "boost")
        - 9 * (mode == "eco")
        - 25 * (mode == "service")
        + rng.normal(0, 3, n)
    )
    frame = pd.DataFrame(
        {
            "time": when.strftime("%Y-%m-%d %H:%M:%S"),
            "plant": "north",
            "reading": np.arange(n),
            "mode": mode,
            "outside": holes(rng, pd.Series(outside.round(1)), 0.05),
            "alarm": holes(rng, pd.Series(rng.random(n) < 0.03), 0.02),
            "dead": np.nan,
            "firmware": rng.choice(["1.0.2", "1.0.3", "1.1.0"], n),
        }
    )
    for i in range(42):
        values = outside * rng.uniform(-1, 1) + hour * rng.uniform(-0.3, 0.3) + rng.normal(0, 3, n)
        values = np.asarray(values)
        values[rng.random(n) < 0.003] = 9999.0
        frame[f"sensor_{i:02}"] = holes(rng, pd.Series(values.round(2)), 0.04 if i % 5 == 0 else 0.0)
    return frame, pd.Series(np.asarray(load).round(2), name="load")


def number(texts):
    """Return amounts written for people as numbers."""
    return texts.str.replace(r"[€,]", "", regex=True).astype(float)


def cleaned(name, frame, train):
    """Return the table as an array that a careful person would make of it, knowing what each column means."""
    parts: dict[str, np.ndarray] = {}

    def numbers(column, values):
        values = np.asarray(values, dtype=float)
        low, high = np.nanquantile(values[train], [0.25, 0.75])
        values = np.where(np.abs(values - np.nanmedian(values)) > 20 * (high - low + 1e-9), np.nan, values)
        known = ~np.isnan(values)
        parts[column] = np.where(known, values, np.median(values[train & known]))
        if not known.all():
            parts[f"{column} is known"] = known.astype(float)

    def categories(column, values):
        values = values.astype(object).where(values.notna(), "none").astype(str)
        frequent = values[train].value_counts()
        for value in sorted(frequent[frequent >= 5].index):
            parts[f"{column} is {value}"] = (values == value).to_numpy(dtype=float)

    def times(column, values):
        values = pd.to_datetime(values)
        days = (values - values.min()).dt.total_seconds() / 86_400
        parts[column] = days.to_numpy()
        if name != "sensors" or days.max() > 365:
            for function in (np.sin, np.cos):
                parts[f"{column} {function.__name__} year"] = function(
                    2 * np.pi * values.dt.dayofyear / 365.25
                ).to_numpy()
        if name != "houses":
            for function in (np.sin, np.cos):
                parts[f"{column} {function.__name__} day"] = function(2 * np.pi * (days % 1)).to_numpy()
        for weekday in range(7):
            parts[f"{column} on {weekday}"] = (values.dt.dayofweek == weekday).to_numpy(dtype=float)

    useless = {"Id", "Utilities", "Remarks", "customer_id", "branch", "plant", "reading", "dead"}
    for column in frame.columns.difference(useless, sort=False):
        values = frame[column]
        if column in ("LotArea", "balance"):
            numbers(column, number(values))
        elif column in ("SaleDate", "called", "time"):
            times(column, values)
        elif values.dtype == object:
            categories(column, values)
        else:
            numbers(column, values)
    return np.column_stack(list(parts.values()))


TABLES = {"houses": houses, "bank": bank, "sensors": sensors}


def scores(name, n, seed):
    """Return score and seconds of the raw table and of the clean one."""
    frame, y = TABLES[name](n, seed)
    train = np.random.default_rng(seed + 1000).random(n) < 0.75
    clean = cleaned(name, frame, train)
    result = []
    for X, rows in ((frame, frame.__getitem__), (clean, clean.__getitem__)):
        model = (BPCClassifier if y.dtype == object else BPCRegressor)(random_state=seed)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows(train), y[train])
            if y.dtype == object:
                proba = model.predict_proba(rows(~train))
                hit = proba[np.arange(len(proba)), np.searchsorted(model.classes_, y[~train])]
                score = float(-np.log(np.maximum(hit, 1e-12)).mean())
            else:
                score = float(np.sqrt(np.mean((model.predict(rows(~train)) - y[~train]) ** 2)))
        result.append((score, time.perf_counter() - start, X.shape[1], model.model_.n_features))
    return result


def main():
    """Print a line per table and seed, and the ratio of the means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()
    for name, make in TABLES.items():
        if args.write:
            frame, y = make(args.rows, 0)
            frame.assign(**{y.name: y}).to_csv(args.write / f"{name}.csv", index=False)
            continue
        raw, clean = [], []
        for seed in range(args.seeds):
            ours, theirs = scores(name, args.rows, seed)
            raw.append(ours[0])
            clean.append(theirs[0])
            print(
                f"{name} seed {seed}: raw {ours[0]:.4g} ({ours[2]} columns, {ours[3]} inputs, "
                f"{ours[1]:.1f} s), clean {theirs[0]:.4g} ({theirs[3]} inputs, {theirs[1]:.1f} s)",
                flush=True,
            )
        print(f"{name}: raw / clean = {np.mean(raw) / np.mean(clean):.4f}", flush=True)


if __name__ == "__main__":
    main()
