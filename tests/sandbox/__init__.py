"""The sandbox under attack: by bubblewrap, by our launcher, and by Landlock alone."""
