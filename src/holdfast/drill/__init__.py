"""The drill: proves durability on the user's own machine by killing a scratch gateway again and again."""
