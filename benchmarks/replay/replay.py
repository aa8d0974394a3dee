"""The straightforward script that `run.sh` measures the replay against: the
default allocator, free blocks of each pool and stream in a sorted list."""
import bisect
import sys

MIB = 1 << 20


class Block:
    __slots__ = ("address", "size", "requested", "key", "prev", "next", "free")

    def __init__(self, address, size, key):
        self.address, self.size, self.key = address, size, key
        self.requested, self.prev, self.next = 0, None, None
        self.free = False


class Pool:
    def __init__(self):
        self.free, self.top = {}, 0
        self.now = dict.fromkeys(
            ("requested", "allocated", "active", "reserved"), 0)
        self.peak = dict(self.now)

    def up(self, name, n):
        self.now[name] += n
        if self.now[name] > self.peak[name]:
            self.peak[name] = self.now[name]

    def cache(self, b):
        b.free = True
        bisect.insort(self.free.setdefault(b.key, []),
                      (b.size, b.address, b))

    def uncache(self, b):
        blocks = self.free[b.key]
        del blocks[bisect.bisect_left(blocks, (b.size, b.address))]
        b.free = False

    def alloc(self, n, stream):
        size = max(512, -(-n // 512) * 512)
        key = (size <= MIB, stream)
        blocks = self.free.setdefault(key, [])
        i = bisect.bisect_left(blocks, (size, -1))
        if i < len(blocks):
            b = blocks.pop(i)[2]
            b.free = False
        else:
            segment = 2 * MIB if size <= MIB else \
                20 * MIB if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB
            b = Block(self.top, segment, key)
            self.top += segment
            self.up("reserved", segment)
        rest = b.size - size
        if rest >= 512 if key[0] else rest > MIB:
            upper = Block(b.address + size, rest, key)
            upper.prev, upper.next = b, b.next
            if b.next:
                b.next.prev = upper
            b.next, b.size = upper, size
            self.cache(upper)
        b.requested = n
        self.up("requested", n)
        self.up("allocated", b.size)
        self.up("active", b.size)
        return b

    def free_requested(self, b):
        self.now["allocated"] -= b.size

    def free_completed(self, b):
        self.now["active"] -= b.size
        self.now["requested"] -= b.requested
        if b.prev and b.prev.free:
            p = b.prev
            self.uncache(p)
            b.address, b.size, b.prev = p.address, b.size + p.size, p.prev
            if b.prev:
                b.prev.next = b
        if b.next and b.next.free:
            n = b.next
            self.uncache(n)
            b.size, b.next = b.size + n.size, n.next
            if b.next:
                b.next.prev = b
        self.cache(b)


def main():
    pool, live = Pool(), {}
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            f = line.rstrip("\n").split("\t")
            if f[0] == "alloc":
                live[f[2]] = pool.alloc(int(f[1]), f[3])
            elif f[0] == "free_requested":
                pool.free_requested(live[f[1]])
            elif f[0] == "free_completed":
                pool.free_completed(live.pop(f[1]))
    print("reserved peak", pool.peak["reserved"],
          "requested peak", pool.peak["requested"])


main()
