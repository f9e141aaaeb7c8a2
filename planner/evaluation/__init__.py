"""How good the evidence is: labelled corpora, planned through the real path and measured."""
