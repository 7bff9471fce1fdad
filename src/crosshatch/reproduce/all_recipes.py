"""All recipes there are, and those that are not there yet."""

from crosshatch.reproduce.recipe import Recipe
from crosshatch.reproduce.recipes.fedbcd import (
    fedbcd_fig2,
    fedbcd_fig3,
    fedbcd_fig4b,
    fedbcd_fig5,
    fedbcd_table1_cnn,
    fedbcd_table1_lr,
    fedbcd_table2,
)
from crosshatch.reproduce.recipes.icassp import icassp_fig2a, icassp_fig2b, icassp_fig2c, icassp_fig3
from crosshatch.reproduce.recipes.mtcd import mtcd_fig2, mtcd_fig3

RECIPES: dict[str, Recipe] = {
    recipe.id: recipe
    for recipe in (
        fedbcd_table1_lr.RECIPE,
        fedbcd_table1_cnn.RECIPE,
        fedbcd_fig2.RECIPE,
        fedbcd_fig3.FIG3,
        fedbcd_fig3.FIG4A,
        fedbcd_fig4b.RECIPE,
        fedbcd_fig5.RECIPE,
        fedbcd_table2.RECIPE,
        icassp_fig2a.RECIPE,
        icassp_fig2b.RECIPE,
        icassp_fig2c.RECIPE,
        icassp_fig3.FIG3A,
        icassp_fig3.FIG3B,
        mtcd_fig2.RIDGE,
        mtcd_fig2.SPARSE,
        mtcd_fig3.RECIPE,
    )
}
LATER: dict[str, str] = {
    **{f"tdcd-fig{figure}": "TDCD" for figure in range(3, 10)},
    **{
        f"hsgd-{place}": "HSGD"
        for place in ("fig4", "fig5", "table2", "table3", "table4", "fig6", "fig7", "fig8", "fig9")
    },
}
"""Ids of recipes that are known and not there yet, with their paper."""
