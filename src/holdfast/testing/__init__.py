"""What packages that extend Holdfast are tested with.  Only tests import it."""
