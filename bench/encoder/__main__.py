"""python -m bench.encoder teach | train | measure | export"""

from __future__ import annotations

import argparse
import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING

from bench.encoder.examples import Reader, Tokens, corpus, leave_out, locomo
from bench.judge.spaces import judge_spaces
from commonplace.embedders.packaged_files import ENCODER, sha256_of

if TYPE_CHECKING:
    from bench.encoder.network import Encoder


def main() -> None:
    try:
        from bench.encoder import train
    except ImportError as error:
        raise SystemExit(f"training needs the extra `train` ({error.name} is missing)") from error
    parser = argparse.ArgumentParser(prog="python -m bench.encoder", description="The encoder that ships.")
    commands = parser.add_subparsers(dest="command", required=True)
    teach = commands.add_parser("teach", help="let cross-encoders judge spaces they have not seen")
    for name, text in (("start", "model.safetensors of all-MiniLM-L6-v2"), ("tokenizer", "its tokenizer.json")):
        teach.add_argument(f"--{name}", type=Path, required=True, help=text)
    teach.add_argument("--out", type=Path, required=True, help="the logits, as JSON")
    train.arguments(commands.add_parser("train", help="train the encoder anew"))
    measure = commands.add_parser("measure", help="measure weights that `train` wrote")
    measure.add_argument("weights", type=Path)
    measure.add_argument("--tokenizer", type=Path, required=True)
    measure.add_argument("--locomo", type=Path)
    export = commands.add_parser("export", help="write weights that `train` wrote as the ONNX file that ships")
    export.add_argument("weights", type=Path)
    export.add_argument("--out", type=Path, default=ENCODER.path, help="the file; by default the package's own")
    export.add_argument("--exact", action="store_true", help="multiply in float32, not in int8")
    chosen = parser.parse_args()
    mains = {"teach": teach_main, "train": train_main, "measure": measure_main, "export": export_main}
    mains[chosen.command](chosen)


def teach_main(chosen: argparse.Namespace) -> None:
    from bench.encoder.network import from_published
    from bench.encoder.teacher import teach
    from bench.encoder.train import nearest
    from bench.judge.network import cross_encoder

    spaces = [*map(Reader(chosen.tokenizer).space, judge_spaces())]
    near = nearest(_to_device(from_published(chosen.start)), spaces)
    taught = teach(cross_encoder(chosen.start), spaces, near)
    entries = {
        space.name: {"places": one.places, "logits": [[round(x, 2) for x in row] for row in one.logits]}
        for space, one in zip(spaces, taught, strict=True)
    }
    chosen.out.write_text(json.dumps(entries, separators=(",", ":")), "utf-8")


def train_main(chosen: argparse.Namespace) -> None:
    from bench.encoder.network import averaged, from_published
    from bench.encoder.train import Recipe, Teaching, Trainer

    reader = Reader(chosen.tokenizer)
    kept, left = leave_out(judge_spaces(), chosen.leave_out) if chosen.leave_out else (judge_spaces(), [])
    spaces = [reader.space(space) for space in kept]
    sets = _sets(reader, chosen.locomo)
    if left:
        sets["left out"] = [reader.space(space) for space in left]
    print(f"{len(spaces)} spaces, {sum(len(s.examples) for s in spaces)} questions to learn from", flush=True)
    teaching = None
    if chosen.teacher_logits:
        known = json.loads(chosen.teacher_logits.read_text("utf-8"))
        teaching = [Teaching(**known[space.name]) for space in spaces]
    recipe = Recipe(
        epochs=chosen.epochs,
        rate=chosen.rate,
        keep=chosen.keep,
        teacher=chosen.teacher if teaching else 0.0,
        swapped=chosen.swapped,
        refresh=chosen.refresh,
    )
    start = _to_device(from_published(chosen.start))
    published = copy.deepcopy(start).eval()
    models = []
    for seed in chosen.seeds:
        models.append(Trainer(spaces, recipe, teaching).run(copy.deepcopy(start), published, seed, f"seed {seed}"))
        _save(averaged(models), chosen.out)
        _report(f"seed {seed}", models[-1], sets)
    if len(models) > 1:
        _report("averaged", averaged(models), sets)


def measure_main(chosen: argparse.Namespace) -> None:
    from bench.encoder.network import load

    _report(chosen.weights.name, _to_device(load(chosen.weights)), _sets(Reader(chosen.tokenizer), chosen.locomo))


def export_main(chosen: argparse.Namespace) -> None:
    from bench.encoder.export import export

    export(chosen.weights, chosen.out, exact=chosen.exact)
    print(f"{chosen.out}: {chosen.out.stat().st_size:,} bytes, sha256 {sha256_of(chosen.out)}")
    if sha256_of(chosen.out) != ENCODER.sha256:
        print("packaged_files.ENCODER names another sha256: change it there, and NAME if the vectors differ")


def _sets(reader: Reader, conversations: Path | None) -> dict[str, list[Tokens]]:
    sets = {"corpus tune": [reader.space(space) for space in corpus("tune")]}
    if conversations:
        sets["LoCoMo dev"] = [reader.space(space) for space in locomo(conversations)]
    return sets


def _report(what: str, model: Encoder, sets: dict[str, list[Tokens]]) -> None:
    from bench.encoder.measure import lines, measure

    for name, spaces in sets.items():
        print(lines(f"{what}, {name},", measure(model, spaces)), flush=True)


def _save(model: Encoder, path: Path) -> None:
    from safetensors.torch import save_file

    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: value.half().cpu().contiguous() for name, value in model.state_dict().items()}, str(path))


def _to_device(model: Encoder) -> Encoder:
    import torch

    return model.to("cuda" if torch.cuda.is_available() else "cpu").eval()


if __name__ == "__main__":
    main()
