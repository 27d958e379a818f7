"""What data costs: inputs, attribution, reports and savings."""
