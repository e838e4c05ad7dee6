"""Complex queries over incomplete knowledge graphs: answering, sampling, hardness, evaluation."""

from kopl_base.conflict import names_of, refuse_others

# Others use the names of our packages, too.
refuse_others("cqa")
__dir__ = names_of("cqa")
