"""The rules of Holdfast: pure, table-driven, standard library only; nothing here waits, reads a clock or makes ids."""
