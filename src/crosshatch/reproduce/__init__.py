"""Tables and figures of the papers, made anew: a recipe each, its runs, its rules and its page."""
