"""`bayespc serve` as real clients see it: tritonclient, payloads of MLflow, curl, an OpenAPI validator."""

import io
import json
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import built
import numpy as np
import pandas as pd
import pytest

QUICK = ["--set", "training.epochs=5", "--set", "network.hidden_layer_sizes=[8]", "--search", "off"]


@pytest.fixture(scope="module")
def command():
    found = built.command()
    if "serve" not in subprocess.run([found, "--help"], capture_output=True, text=True, timeout=60).stdout:
        pytest.skip("the command was built without the feature `serve`")
    return found


@pytest.fixture(scope="module")
def flats():
    rng = np.random.default_rng(0)
    size = rng.uniform(20, 120, 200).round(1)
    city = rng.choice(["Bern", "Chur", "Genf"], 200)
    return pd.DataFrame(
        {
            "size": size,
            "city": city,
            "new": rng.random(200) < 0.5,
            "rent": (12 * size + rng.normal(0, 50, 200)).round(),
        }
    )


@pytest.fixture(scope="module")
def server(command, flats, tmp_path_factory):
    """Serve a model of rents and one of cities; ends by SIGTERM, which is a success."""
    folder = tmp_path_factory.mktemp("serve")
    flats.to_csv(folder / "flats.csv", index=False)
    for target in ("rent", "city"):
        fit = [
            command,
            "fit",
            folder / "flats.csv",
            "--target",
            target,
            "--out",
            folder / f"{target}.safetensors",
            *QUICK,
        ]
        subprocess.run(fit, check=True, capture_output=True, timeout=120)
    models = [str(folder / f"{target}.safetensors") for target in ("rent", "city")]
    running = subprocess.Popen(
        [command, "serve", *models, "--port", "0", "--log", "json"], stderr=subprocess.PIPE, text=True
    )
    try:
        assert running.stderr is not None
        event = json.loads(running.stderr.readline())
        assert event["event"] == "listening" and event["models"] == ["city", "rent"]
        yield event["address"], folder
    finally:
        running.send_signal(signal.SIGTERM)
        code = running.wait(timeout=60)
    assert code == 0


def post(server, path, body, kind="application/json"):
    """Return status and JSON of the answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"http://{server[0]}{path}", data, {"content-type": kind})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_tritonclient_gets_what_the_command_predicts(server, command, flats):
    http = pytest.importorskip("tritonclient.http")
    client = http.InferenceServerClient(server[0])
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("rent")
    metadata = client.get_model_metadata("rent")
    assert [column["name"] for column in metadata["inputs"]] == ["size", "city", "new"]
    rows = flats.head(5)

    def tensor(name, values, datatype, binary=False):
        column = http.InferInput(name, [len(values)], datatype)
        column.set_data_from_numpy(values, binary_data=binary)
        return column

    inputs = [
        tensor("size", rows["size"].to_numpy(), "FP64"),
        tensor("city", rows["city"].to_numpy().astype(object), "BYTES"),
        tensor("new", rows["new"].to_numpy(), "BOOL"),
    ]
    outputs = [
        http.InferRequestedOutput(name, binary_data=False) for name in ("mean", "lower", "epistemic_std")
    ]
    answer = client.infer("rent", inputs, outputs=outputs, request_id="7")
    rows.to_csv(server[1] / "five.csv", index=False)
    predict = [command, "predict", server[1] / "rent.safetensors", server[1] / "five.csv", "--digits", "17"]
    text = subprocess.run(predict, check=True, capture_output=True, text=True, timeout=60).stdout
    expected = pd.read_csv(io.StringIO(text))
    for name in ("mean", "lower", "epistemic_std"):
        np.testing.assert_allclose(answer.as_numpy(name), expected[name], rtol=1e-12)
    assert answer.get_response()["id"] == "7"
    # Without outputs the client asks for binary ones, and reads what it gets.
    assert client.infer("rent", inputs).as_numpy("ood_score").shape == (5,)
    classes = client.infer("city", [inputs[0], inputs[2], tensor("rent", rows["rent"].to_numpy(), "FP64")])
    assert set(classes.as_numpy("class")) <= {"Bern", "Chur", "Genf"}
    assert classes.as_numpy("probabilities").shape == (5, 3)
    with pytest.raises(Exception, match="binary_data=False"):
        client.infer("rent", [tensor("size", rows["size"].to_numpy(), "FP64", binary=True), *inputs[1:]])
    with pytest.raises(Exception, match="`new` is missing"):
        client.infer("rent", inputs[:2])
    client.close()


def test_mlflows_payloads_of_one_frame_give_the_same_predictions(server, flats):
    rows = flats.drop(columns="rent").head(4)
    path = "/invocations?model=rent"
    payloads = [
        {"dataframe_split": json.loads(rows.to_json(orient="split"))},
        {"dataframe_records": json.loads(rows.to_json(orient="records"))},
        {"instances": json.loads(rows.to_json(orient="records"))},
        {"inputs": rows.to_dict(orient="list")},
    ]
    answers = [post(server, path, payload) for payload in payloads]
    answers.append(post(server, path, rows.to_csv(index=False).encode(), "text/csv"))
    assert all(status == 200 for status, _ in answers), answers
    assert all(answer == answers[0] for answer in answers)
    frame = pd.DataFrame(answers[0][1]["predictions"])
    assert len(frame) == 4 and (frame["lower"] < frame["mean"]).all()


def test_what_is_wrong_is_named(server):
    row = {"size": 50, "city": "Basel", "new": True}
    status, problem = post(server, "/invocations?model=rent", {"dataframe_records": [row]})
    assert (status, problem["column"], problem["row"], problem["value"]) == (400, "city", 1, "Basel")
    status, problem = post(server, "/v2/models/rent/infer", b"{")
    assert status == 400 and "error" in problem


def test_curl_gets_an_answer(server):
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl")
    url = f"http://{server[0]}/invocations?model=rent&level=0.5"
    line = [
        curl,
        "--silent",
        "--fail",
        url,
        "-H",
        "content-type: text/csv",
        "--data-binary",
        "size,city,new\n50,Bern,true\n",
    ]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "mean" in json.loads(done.stdout)["predictions"][0]


def test_a_validator_finds_the_openapi_document_valid(server):
    validator = pytest.importorskip("openapi_spec_validator")
    with urllib.request.urlopen(f"http://{server[0]}/openapi.json", timeout=60) as answer:
        validator.validate(json.load(answer))
