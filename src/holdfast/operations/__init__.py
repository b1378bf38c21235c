"""Everything that can be asked of a gateway: one service for each noun, and each operation is a method of one."""
