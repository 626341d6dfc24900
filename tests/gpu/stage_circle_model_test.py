"""A model of variants/common/mma_ahead.cuh: two groups of warps take turns at the multiplications, and pack what
they multiply next into one circle of stages. Warps advance in random order; nothing may be overwritten before
it was read, nor read before it is there."""

import random
import unittest

WARPS, TILES = 3, 4  # of a group


class Model:
    def __init__(self, steps, depth, seed):
        self.steps, self.depth, self.random = steps, depth, random.Random(seed)
        self.phase, self.arrived = [0] * depth, [0] * depth  # the stages' barriers
        self.turn = {0: [0, 0], 1: [0, 0]}  # a group's named barrier: arrivals, completions
        self.content = [[None] * WARPS for _ in range(depth)]  # of a stage, by the warp that packed its share
        self.faults = 0

    def arrive_at_turn(self, group):
        self.turn[group][0] += 1
        if self.turn[group][0] == 2 * WARPS:
            self.turn[group] = [0, self.turn[group][1] + 1]

    def wait_for_turn(self, group):
        before = self.turn[group][1]
        self.arrive_at_turn(group)
        while self.turn[group][1] == before:
            yield

    def pack(self, group, warp, tile, first):
        for step in range(self.steps):
            position = (first + step) % (2 * self.depth)
            stage, parity_before = position % self.depth, position < self.depth
            while self.phase[stage] % 2 == parity_before:
                yield
            self.content[stage][warp] = (group, tile, step)
            yield

    def warp(self, group, warp):
        first = group * self.steps
        if group == 1:
            self.arrive_at_turn(0)  # group 0 begins
        yield from self.pack(group, warp, 0, first)
        for tile in range(TILES):
            yield from self.wait_for_turn(group)
            for step in range(self.steps):
                stage = (first + step) % self.depth
                yield
                self.faults += any(share != (group, tile, step) for share in self.content[stage])
                self.arrived[stage] += 1
                if self.arrived[stage] == WARPS:
                    self.arrived[stage], self.phase[stage] = 0, self.phase[stage] + 1
                yield
            self.arrive_at_turn(1 - group)
            first += 2 * self.steps
            if tile + 1 < TILES:
                yield from self.pack(group, warp, tile + 1, first)
        if group == 0:
            yield from self.wait_for_turn(0)

    def run(self):
        """How many reads found something else than what they were for; None: the warps did not end."""
        warps = [self.warp(group, warp) for group in (0, 1) for warp in range(WARPS)]
        for _ in range(100_000):
            if not warps:
                return self.faults
            turn = self.random.randrange(len(warps))
            try:
                next(warps[turn])
            except StopIteration:
                warps.pop(turn)
        return None


def faulty_runs(steps, depth, runs=100):
    return sum(Model(steps, depth, seed).run() != 0 for seed in range(runs))


class StageCircle(unittest.TestCase):
    def test_one_and_a_half_tiles_suffice(self):  # StageCircle::suffices()
        for steps in range(1, 5):
            for depth in range((3 * steps + 1) // 2, 2 * steps + 1):
                self.assertEqual(faulty_runs(steps, depth), 0, (steps, depth))

    def test_one_tile_does_not(self):
        for steps in range(1, 5):
            faulty = faulty_runs(steps, steps)
            print(f"stages for one tile, {steps}: {faulty} of 100 runs are faulty")
            self.assertGreater(faulty, 0, steps)


if __name__ == "__main__":
    unittest.main()
