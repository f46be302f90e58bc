# SPDX-License-Identifier: Apache-2.0
"""SpeculativeDecodingMetrics, as Modular MAX has them, and the acceptance by position.

Contract: sums of what the engine counted, since the start or the last `reset`.
"""
from typing import Dict, List, Optional


class SpeculativeDecodingMetrics:
    """Counts of a pipeline."""

    def __init__(self, num_draft_tokens: int):
        self._positions = num_draft_tokens
        self.reset()

    def reset(self) -> None:
        """All counts are 0 again."""
        self.bonus_tokens_used = self.draft_tokens_accepted = self.draft_tokens_generated = self.num_generations = 0
        self.drafted_per_position, self.accepted_per_position = [0] * self._positions, [0] * self._positions

    def update(self, drafted: int, accepted: int, bonus: bool) -> None:
        """A round of one request."""
        self.draft_tokens_generated += drafted
        self.draft_tokens_accepted += accepted
        self.bonus_tokens_used += bonus
        self.num_generations += drafted > 0
        for counts, number in ((self.drafted_per_position, drafted), (self.accepted_per_position, accepted)):
            counts.extend([0] * (number - len(counts)))
            for position in range(number):
                counts[position] += 1

    @property
    def acceptance_rate_per_position(self) -> List[Optional[float]]:
        """Accepted / drafted at each position of a draft; None where nothing was drafted."""
        return [accepted / drafted if drafted else None for accepted, drafted in zip(self.accepted_per_position, self.drafted_per_position)]

    def get_stats(self) -> Dict[str, float]:
        """acceptance_rate, bonus_tokens_used, draft_tokens_accepted, draft_tokens_generated, avg_acceptance_length: drafts that a round accepts."""
        return {"acceptance_rate": self.draft_tokens_accepted / max(1, self.draft_tokens_generated), "bonus_tokens_used": self.bonus_tokens_used,
                "draft_tokens_accepted": self.draft_tokens_accepted, "draft_tokens_generated": self.draft_tokens_generated,
                "avg_acceptance_length": self.draft_tokens_accepted / max(1, self.num_generations)}

    def __str__(self) -> str:
        found = self.get_stats()
        return (f"SpeculativeDecodingMetrics(acceptance_rate={found['acceptance_rate']:.2%}, bonus_tokens_used={found['bonus_tokens_used']}, "
                f"draft_tokens_accepted={found['draft_tokens_accepted']}/{found['draft_tokens_generated']}, "
                f"avg_acceptance_length={found['avg_acceptance_length']:.2f})")
