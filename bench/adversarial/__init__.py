"""What a rogue store can do to an answer that several stores give: the paper's §5.2, and beyond it."""
