"""Amundsen as a catalog: its graph in Neo4j, and the CSV folders of databuilder."""
