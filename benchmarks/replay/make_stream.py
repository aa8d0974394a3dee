"""Write a stream like that of a training job: steps of a forward that keeps
activations and a backward that frees them, with temporaries in between and
some frees that come late. `make_stream.py EVENTS > stream.tsv`"""
import random
import sys


def main():
    want, n, next_id = int(sys.argv[1]), 0, 0
    draw = random.Random(2011)
    sizes = [512 << i for i in range(18)] + [3 << 20, 11 << 20, 22 << 20]
    out = []

    def alloc(size, stream=0):
        nonlocal n, next_id
        out.append(f"alloc\t{size}\t{next_id}\t{stream}\n")
        n, next_id = n + 1, next_id + 1
        return next_id - 1

    def free(block, late):
        nonlocal n
        out.append(f"free_requested\t{block}\n")
        late.append(block)
        n += 1
        while len(late) > (8 if draw.random() < 0.1 else 0):
            out.append(f"free_completed\t{late.pop(0)}\n")
            n += 1

    state = [alloc(draw.choice(sizes)) for _ in range(400)]
    while n < want:
        late, kept = [], []
        for _ in range(600):
            temporary = alloc(draw.choice(sizes))
            kept.append(alloc(draw.choice(sizes)))
            free(temporary, late)
        for block in reversed(kept):
            gradient = alloc(draw.choice(sizes))
            free(block, late)
            free(gradient, late)
        out.extend(f"free_completed\t{b}\n" for b in late)
        n += len(late)
        sys.stdout.write("".join(out))
        out.clear()
    sys.stdout.write("".join(out))
    _ = state


main()
