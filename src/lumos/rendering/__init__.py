"""Pictures of cost: how it flows through lineage, who carries most, how it went over time."""
