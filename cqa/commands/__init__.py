"""The actions of ``kopl cqa``, one module for each."""
