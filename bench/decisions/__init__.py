"""What single decisions of actors cost, without a broker: matching, searching, recalling, choosing a mode."""
