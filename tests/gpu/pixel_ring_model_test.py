"""A model of variants/common/hopper_pixel_ring.cuh: two thread blocks fill each other's ring of chunks, and
four consumers a block take the tiles of a part in turn. Warps and copies advance in random order, each at its
own pace. No chunk may be overwritten before it was read, nor read before it is there; whatever arrives at a
barrier must find it in the phase that it is meant for; and every warp must end.

Warps wait for parities, as in the kernel; the numbers of phases serve the checks alone."""

import random
import unittest

BLOCKS, CONSUMERS, WARPS = 2, 4, 2  # warps of a group; the kernel has 4
PIXELS, FILTER, SLOTS = 128, 3, 5
WIDTHS = {1: (4, 62), 2: (64, 126), 3: (128, 190)}  # the least and the most, by halo


class Fault(Exception):
    pass


class Barrier:
    def __init__(self, count):
        self.count = self.pending = count
        self.phase = self.copies = 0  # copies: expected less come, in place of their bytes

    def arrive(self, phase, count=0, expected=0, copied=0):
        if phase != self.phase or count > self.pending:
            raise Fault("an arrival in another phase than its own")
        self.pending -= count
        self.copies += expected - copied
        if self.pending == self.copies == 0:
            self.pending, self.phase = self.count, phase + 1

    def wait(self, parity):
        while self.phase % 2 == parity:
            yield


class Model:
    """A cluster's part, tiles first ... end - 1, of a batch with so many tiles an image. blocks_of_k: of output
    channels that it computes; with one, its thread blocks take tiles by turns."""

    def __init__(self, width, tiles, first, end, seed, slots=SLOTS, blocks_of_k=BLOCKS):
        self.width, self.tiles, self.first, self.end, self.slots = width, tiles, first, end, slots
        self.halo = ((FILTER - 1) * (width + 1) + PIXELS - 1) // PIXELS
        self.first_chunk = self.chunk_of(first)
        self.end_chunk = self.chunk_of(end - 1) + 1 + self.halo
        self.random = random.Random(seed)
        self.tile_step = BLOCKS // blocks_of_k
        empty_count = blocks_of_k * WARPS * (1 + self.halo) + (0 if blocks_of_k == BLOCKS else BLOCKS * WARPS)
        self.full = [[Barrier(WARPS) for _ in range(slots)] for _ in range(BLOCKS)]
        self.empty = [[Barrier(empty_count) for _ in range(slots)] for _ in range(BLOCKS)]
        self.turn = [[[0, 0] for _ in range(CONSUMERS)] for _ in range(BLOCKS)]  # arrivals, completions
        # What a plane of a slot holds, (image, chunk); None: it is being written. The last repeats the first.
        self.ring = [[[None] * (BLOCKS * WARPS) for _ in range(slots + 1)] for _ in range(BLOCKS)]
        self.copies = []

    def chunk_of(self, tile):
        return tile + tile // self.tiles * self.halo

    def write(self, block, slot, plane, what):
        self.ring[block][slot][plane] = None
        yield
        self.ring[block][slot][plane] = what

    def copy(self, block, slot, plane, what, number):
        """To the peer; begins and ends at any time from now on."""
        yield
        for _ in self.write(1 - block, slot, plane, what):
            self.check(block, slot, plane, what)
            yield
        self.check(block, slot, plane, what)
        self.full[1 - block][number % self.slots].arrive(number // self.slots, copied=1)

    def check(self, block, slot, plane, what):
        if self.ring[block][slot][plane] != what:
            raise Fault("a chunk is not there yet, or not any more")

    def producer(self, block, warp):
        plane = block * WARPS + warp
        image, chunk = divmod(self.first_chunk, self.tiles + self.halo)
        slot = parity = 0
        for number in range(self.end_chunk - self.first_chunk):
            yield from self.empty[block][slot].wait(parity ^ 1)
            written = (0, self.slots) if slot == 0 else (slot,)
            for place in written:
                yield from self.write(block, place, plane, (image, chunk))
            expected = WARPS * len(written) if warp == 0 else 0
            self.full[block][slot].arrive(number // self.slots, count=1, expected=expected)
            for place in written:
                yield
                self.start(self.copies, self.copy(block, place, plane, (image, chunk), number))
            if number > 0:
                yield from self.tell_that_chunk_came(block, number - 1)
            slot += 1
            if slot == self.slots:
                slot, parity = 0, parity ^ 1
            chunk += 1
            if chunk == self.tiles + self.halo:
                image, chunk = image + 1, 0
        yield from self.tell_that_chunk_came(block, number)

    def tell_that_chunk_came(self, block, number):
        if self.tile_step == 1:  # the consumers of both blocks read every chunk
            return
        slot, phase = number % self.slots, number // self.slots
        yield from self.full[block][slot].wait(phase % 2)
        for to in (block, 1 - block):
            self.empty[to][slot].arrive(phase, count=1)
            yield

    def arrive_at_turn(self, block, consumer):
        turn = self.turn[block][consumer]
        turn[0] += 1
        if turn[0] == 2 * WARPS:
            turn[:] = 0, turn[1] + 1

    def wait_for_turn(self, block, consumer):
        before = self.turn[block][consumer][1]
        self.arrive_at_turn(block, consumer)
        while self.turn[block][consumer][1] == before:
            yield

    def read(self, block, chunk, image, chunk_of_image, r, s):
        """A tap's pixels: wgmma knows the address of the first one only, from which the others follow."""
        first = r * self.width
        slot = (chunk + first // PIXELS) % self.slots
        for pixel in (s, s + PIXELS - 1):
            place = slot + (first % PIXELS + pixel) // PIXELS
            for plane in range(BLOCKS * WARPS):
                self.check(block, place, plane, (image, chunk_of_image + (first + pixel) // PIXELS))

    def multiply(self, block, consumer, chunk, image, chunk_of_image):
        yield from self.wait_for_turn(block, consumer)
        issued, unseen = [], chunk
        for r in range(FILTER):
            while unseen <= chunk + (r * self.width + PIXELS + FILTER - 2) // PIXELS:
                yield from self.full[block][unseen % self.slots].wait(unseen // self.slots % 2)
                unseen += 1
            for s in range(FILTER):
                if r == s == FILTER - 1:
                    self.arrive_at_turn(block, (consumer + 1) % CONSUMERS)
                issued.append((r, s))
                self.read(block, chunk, image, chunk_of_image, r, s)
            yield
        for tap in issued:  # wgmma may read as late as this
            self.read(block, chunk, image, chunk_of_image, *tap)

    def tiles_of_release(self, i, first, last):
        """For how many tiles, itself included, a tile gives back the chunk i beyond its own."""
        return 1 + (self.halo - i if first else 0) + (i if last else 0)

    def release(self, block, chunk, first, last):
        for i in range(1 + self.halo):
            slot, phase = (chunk + i) % self.slots, (chunk + i) // self.slots
            for to in (block, 1 - block):
                self.empty[to][slot].arrive(phase, count=self.tiles_of_release(i, first, last))
                yield

    def consumer_warp(self, block, consumer):
        if consumer == CONSUMERS - 1:
            self.arrive_at_turn(block, 0)
        first = self.first + block % self.tile_step + consumer * self.tile_step
        for tile in range(first, self.end, CONSUMERS * self.tile_step):
            image, tile_of_image = divmod(tile, self.tiles)
            chunk = self.chunk_of(tile) - self.first_chunk
            yield from self.multiply(block, consumer, chunk, image, tile_of_image)
            yield from self.release(block, chunk, tile_of_image == 0 or tile == self.first,
                                    tile_of_image == self.tiles - 1 or tile == self.end - 1)
            yield  # bias, Mish, Mish, store

    def start(self, runners, steps):
        runners.append((steps, self.random.choice((1, 1, 0.3, 0.05))))

    def run(self):
        """What went wrong; None: nothing."""
        warps = []
        for block in range(BLOCKS):
            for warp in range(WARPS):
                self.start(warps, self.producer(block, warp))
                for consumer in range(CONSUMERS):
                    self.start(warps, self.consumer_warp(block, consumer))
        try:
            for _ in range(100_000):
                if not warps:
                    break
                at = self.random.randrange(len(warps) + len(self.copies))
                runners, at = (warps, at) if at < len(warps) else (self.copies, at - len(warps))
                steps, pace = runners[at]
                if self.random.random() < pace and next(steps, "ended") == "ended":
                    runners.pop(at)
            else:
                return "warps do not end"
        except Fault as fault:
            return str(fault)
        if self.copies:  # into the shared memory of a block that has ended
            return "copies are still on their way"
        chunks = self.end_chunk - self.first_chunk
        for barriers in self.full + self.empty:
            for slot, barrier in enumerate(barriers):
                phases = len(range(slot, chunks, self.slots))
                if (barrier.phase, barrier.pending, barrier.copies) != (phases, barrier.count, 0):
                    return "a barrier is left in the midst of a phase"
        return None


class WithoutExtraArrivals(Model):
    def tiles_of_release(self, i, first, last):
        return 1


class WithoutPeersConsent(Model):
    """Producers wait for the consumers of their own block."""

    def release(self, block, chunk, first, last):
        for i in range(1 + self.halo):
            slot, phase = (chunk + i) % self.slots, (chunk + i) // self.slots
            self.empty[block][slot].arrive(phase, count=BLOCKS * self.tiles_of_release(i, first, last))
            yield


class WithoutProducersConsent(Model):
    """Nobody knows of a chunk that a block does not read whether its copy has come."""

    def tell_that_chunk_came(self, block, number):
        slot, phase = number % self.slots, number // self.slots
        for to in (block, 1 - block):
            self.empty[to][slot].arrive(phase, count=1)
            yield


class WithoutTurns(Model):
    """So that nothing tells a slot's phase from the one two before it."""

    def wait_for_turn(self, block, consumer):
        yield


PARTS = [  # tiles of an image; a part's first tile, and the one behind its last
    (1, 0, 1), (1, 2, 9), (2, 0, 2), (2, 1, 8), (3, 2, 4), (3, 1, 11), (4, 1, 3), (4, 3, 13), (5, 4, 6),
    (6, 0, 6), (7, 3, 17), (20, 5, 7), (20, 5, 8), (20, 4, 16), (20, 15, 30),
]


def faults(model, halo, parts=PARTS, seeds=2, **options):
    """What went wrong in which runs."""
    runs = [(width, *part, seed) for width in WIDTHS[halo] for part in parts for seed in range(seeds)]
    found = {run: model(*run, **options).run() for run in runs}
    return {run: fault for run, fault in found.items() if fault}


class PixelRing(unittest.TestCase):
    def test_every_tile_reads_its_chunks(self):
        for halo in WIDTHS:
            self.assertEqual(faults(Model, halo), {}, halo)

    def test_every_tile_reads_its_chunks_where_blocks_take_them_by_turns(self):
        for halo in WIDTHS:
            self.assertEqual(faults(Model, halo, blocks_of_k=1), {}, halo)

    def check_that_fails(self, model, halo, part, **options):
        found = faults(model, halo, [part], **options)
        print(f"{model.__name__}, {options}, halo {halo}, part {part}: {sorted(set(found.values()))}")
        self.assertGreater(len(found), 0)

    def test_the_model_finds_what_is_wrong(self):
        for halo in WIDTHS:
            self.check_that_fails(WithoutExtraArrivals, halo, (3, 1, 11))
            self.check_that_fails(WithoutPeersConsent, halo, (20, 5, 20), seeds=10)
            self.check_that_fails(WithoutTurns, halo, (2, 0, 9), seeds=10)
            self.check_that_fails(Model, halo, (20, 5, 20), slots=halo)  # a tile reads one more
            self.check_that_fails(WithoutProducersConsent, halo, (3, 1, 11), seeds=10, blocks_of_k=1)
            self.check_that_fails(WithoutTurns, halo, (2, 0, 9), seeds=10, blocks_of_k=1)


if __name__ == "__main__":
    unittest.main()
