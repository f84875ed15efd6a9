"""The verbs as argparse knows them; what they do is imported when they are called."""
