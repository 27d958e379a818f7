"""Who is told of a change and in which words, and how a message gets out."""
